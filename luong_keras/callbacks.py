"""Callbacks for training."""

from luong_keras.training.epoch_logs import (
    JsonLinesLog,
    TokensPerSecond,
    TranslationValidation,
)
from luong_keras.training.interruption import SnapshotCallback, StopOnSignal
from luong_keras.training.monitoring import (
    NonFiniteError,
    ReduceOnPlateau,
    StopOnNonFinite,
    StopOnPlateau,
)
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.training_progress import TrainingProgress
from luong_keras.training.weight_callbacks import (
    BestWeights,
    EpochWeights,
)

__all__ = [
    "BestWeights",
    "EpochWeights",
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
