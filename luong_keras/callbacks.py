"""Callbacks of a training."""

from luong_keras.training.epoch_logs import (
    JsonLinesLog,
    TokensPerSecond,
    TranslationValidation,
)
from luong_keras.training.monitoring import ReduceOnPlateau, StopOnPlateau
from luong_keras.training.nonfinite import NonFiniteError, StopOnNonFinite
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.snapshot_callback import SnapshotCallback
from luong_keras.training.stop_on_signal import StopOnSignal
from luong_keras.training.training_progress import TrainingProgress
from luong_keras.training.weight_callbacks import (
    BestWeights,
    EpochWeights,
    ExponentialWeights,
)

__all__ = [
    "BestWeights",
    "EpochWeights",
    "ExponentialWeights",
    "JsonLinesLog",
    "LearningRateHalving",
    "NonFiniteError",
    "ReduceOnPlateau",
    "SnapshotCallback",
    "StopOnNonFinite",
    "StopOnPlateau",
    "StopOnSignal",
    "TokensPerSecond",
    "TrainingProgress",
    "TranslationValidation",
]
