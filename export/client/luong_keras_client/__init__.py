"""Asks a translator in TensorFlow Serving, by REST and gRPC."""

from luong_keras_client.async_translation_client import AsyncTranslationClient
from luong_keras_client.contract import Contract
from luong_keras_client.server_error import (
    TextTooLongError,
    TranslationServerError,
)
from luong_keras_client.translation_client import (
    TranslationClient,
    TruncationWarning,
)

__all__ = [
    "AsyncTranslationClient",
    "Contract",
    "TextTooLongError",
    "TranslationClient",
    "TranslationServerError",
    "TruncationWarning",
]
