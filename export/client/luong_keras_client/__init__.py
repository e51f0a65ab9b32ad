"""Asks a translator in TensorFlow Serving, by REST and gRPC."""

from luong_keras_client.async_client import AsyncTranslationClient
from luong_keras_client.client import TranslationClient
from luong_keras_client.errors import (
    TextTooLongError,
    TranslationServerError,
    TruncationWarning,
)
from luong_keras_client.responses import (
    Contract,
    ScoredTranslation,
    TranslatedText,
    Translation,
    TranslationScore,
)

__all__ = [
    "AsyncTranslationClient",
    "Contract",
    "ScoredTranslation",
    "TextTooLongError",
    "TranslatedText",
    "Translation",
    "TranslationClient",
    "TranslationScore",
    "TranslationServerError",
    "TruncationWarning",
]
