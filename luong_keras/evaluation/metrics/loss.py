"""The loss of the validation text."""

from __future__ import annotations

from luong_keras.evaluation.metrics.metric import Metric, Target


def metric(target: Target) -> Metric:
    """The metric of a run, in which the validation computes it."""
    return Metric("loss", mode="min", title="loss", logged="val_loss")
