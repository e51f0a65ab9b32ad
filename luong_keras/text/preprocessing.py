"""Moses preprocessing in Python, before a corpus is written."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from luong_keras.config import DataConfig
from luong_keras.missing_package import needs


@dataclasses.dataclass(frozen=True)
class Preprocessor:
    r"""Prepares sentences as the Moses scripts do.

    The steps are, in this order: lower case, normalised punctuation, words
    separated by spaces. They run in Python, for a training corpus;
    `MosesGraph` does the same in the graph of a translator.

    Args:
        language: The language's code, such as `"de"`. Where it is not known,
            None, the rules are those of English, as Moses has it.
        lowercase: Whether to lower-case.
        normalize_punctuation: Whether to unify quotation marks, dashes and
            spaces.
        tokenize: Whether to set words and punctuation apart by spaces; the
            text is then for a `WordTokenizer` with `pretokenized=True`.

    Example:
        >>> prepare = Preprocessor("en", lowercase=True)
        >>> prepare("It’s “new”: isn’t it?")
        'it \'s " new " : isn \'t it ?'
        >>> prepare.postprocess("it 's new , isn 't it ?")
        "it's new, isn't it?"
    """

    language: str | None
    lowercase: bool = False
    normalize_punctuation: bool = True
    tokenize: bool = True

    def __post_init__(self) -> None:
        """Loads the packages, so that a missing one is reported at once."""
        moses_tools(self.language)

    def __call__(self, text: str) -> str:
        """Prepares one sentence.

        Args:
            text: The sentence.

        Returns:
            The prepared sentence.
        """
        moses = moses_tools(self.language)
        if self.lowercase:
            text = text.lower()
        if self.normalize_punctuation:
            text = moses["normalizer"].normalize(text)
        if self.tokenize:
            text = moses["tokenizer"].tokenize(
                text,
                aggressive_dash_splits=False,
                return_str=True,
                escape=False,
            )
        return text

    def postprocess(self, text: str) -> str:
        """Puts the words of a prepared sentence together.

        Args:
            text: A sentence whose words are separated by spaces.

        Returns:
            Running text; the same text where `tokenize` is False.
        """
        if not self.tokenize:
            return text
        return moses_tools(self.language)["detokenizer"].detokenize(
            text.split(), return_str=True, unescape=False
        )


def preprocessor(data: DataConfig, language: str | None) -> Preprocessor | None:
    """The preprocessor of this language, or None for text as it is."""
    if not (data.lowercase or data.normalize_punctuation or data.tokenize):
        return None
    return Preprocessor(
        language,
        lowercase=data.lowercase,
        normalize_punctuation=data.normalize_punctuation,
        tokenize=data.tokenize,
    )


def preprocessors(
    data: DataConfig,
) -> tuple[Preprocessor | None, Preprocessor | None]:
    """The preprocessors of source and target text."""
    return (
        preprocessor(data, data.source_language),
        preprocessor(data, data.target_language),
    )


@functools.cache
def moses_tools(language: str | None) -> dict[str, Any]:
    """The normalizer, tokenizer and detokenizer of a language, loaded once."""
    language = language or "en"
    with needs("sacremoses"):
        import sacremoses
    return {
        "normalizer": sacremoses.MosesPunctNormalizer(lang=language),
        "tokenizer": sacremoses.MosesTokenizer(lang=language),
        "detokenizer": sacremoses.MosesDetokenizer(lang=language),
    }
