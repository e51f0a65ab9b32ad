"""Client of a translator in TensorFlow Serving, for REST and gRPC."""

from luong_keras_client.client import AsyncTranslationClient, TranslationClient
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
