"""Metrics of target tokens."""

from luong_keras.training.metrics import (
    TokenAccuracy,
    TokenCount,
    TokenPerplexity,
)

__all__ = [
    "TokenAccuracy",
    "TokenCount",
    "TokenPerplexity",
]
