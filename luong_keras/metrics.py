"""Metrics of target words."""

from luong_keras.training.metrics import WordAccuracy, WordCount, WordPerplexity

__all__ = [
    "WordAccuracy",
    "WordCount",
    "WordPerplexity",
]
