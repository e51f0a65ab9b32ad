"""Callbacks of a training."""

from luong_keras.training.best_weights import BestWeights
from luong_keras.training.epoch_weights import EpochWeights
from luong_keras.training.exponential_weights import ExponentialWeights
from luong_keras.training.json_lines_log import JsonLinesLog
from luong_keras.training.nonfinite import NonFiniteError, StopOnNonFinite
from luong_keras.training.schedules import LearningRateHalving, ReduceOnPlateau
from luong_keras.training.snapshot_callback import SnapshotCallback
from luong_keras.training.stop_on_plateau import StopOnPlateau
from luong_keras.training.stop_on_signal import StopOnSignal
from luong_keras.training.tokens_per_second import TokensPerSecond
from luong_keras.training.training_progress import TrainingProgress
from luong_keras.training.translation_validation import TranslationValidation

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
