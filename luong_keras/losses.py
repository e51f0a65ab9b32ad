"""Losses for training."""

from luong_keras.training.losses import (
    MaskedSparseCategoricalCrossentropy,
    TranslationLoss,
)

__all__ = [
    "MaskedSparseCategoricalCrossentropy",
    "TranslationLoss",
]
