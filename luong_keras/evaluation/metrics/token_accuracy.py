"""Token accuracy: reference tokens that the model ranks first."""

from __future__ import annotations

from luong_keras.evaluation.metrics.metric import Metric, Target


def metric(target: Target) -> Metric:
    """The metric of a run, in which the validation computes it."""
    return Metric(
        "token_accuracy", title="token accuracy", logged="val_hits_accuracy"
    )
