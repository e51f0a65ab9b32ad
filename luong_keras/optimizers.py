"""Optimizers that clip the norm of all gradients."""

from luong_keras.training.optimizers import (
    ClippedAdam,
    ClippedSGD,
    make_optimizer,
)

__all__ = [
    "ClippedAdam",
    "ClippedSGD",
    "make_optimizer",
]
