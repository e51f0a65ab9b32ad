"""TER: edits between a translation and its reference, per word."""

from __future__ import annotations

import functools

from luong_keras.evaluation.metrics.metric import Metric, Target
from luong_keras.evaluation.translation_scores import translation_score


def metric(target: Target) -> Metric:
    """The metric of a run's text."""
    score = functools.partial(translation_score, metric="TER")
    return Metric("ter", score, "min", title="TER")
