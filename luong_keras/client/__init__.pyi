from .async_translation_client import (
    AsyncTranslationClient as AsyncTranslationClient,
)
from .contract import Contract as Contract
from .server_error import TextTooLongError as TextTooLongError
from .server_error import TranslationServerError as TranslationServerError
from .translation_client import TranslationClient as TranslationClient
from .translation_client import TruncationWarning as TruncationWarning
