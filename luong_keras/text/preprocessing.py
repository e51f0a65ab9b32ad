"""Moses preprocessing in Python, before a corpus is written."""

import dataclasses
import functools
import re
from typing import Any

from luong_keras.config import DataConfig
from luong_keras.missing_package import needs


@dataclasses.dataclass(frozen=True)
class Preprocessor:
    r"""Preparation of sentences, as in the Moses scripts.

    The steps are lower-casing, normalisation of punctuation and tokenisation,
    in this order. They run in Python, for a training corpus; `MosesGraph` does
    the same in the graph of a translator.

    Args:
        language: The code of the language, such as `"de"` or `"de-AT"`. None
            has the rules of English. A language that sacremoses does not know
            has English abbreviations, and every apostrophe becomes a word.
        lowercase: Whether to lower-case.
        normalize_punctuation: Whether to unify quotation marks, dashes and
            spaces.
        tokenize: Whether to separate words and punctuation by spaces; such
            text needs a `WordTokenizer` with `pretokenized=True`.

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
        """Load the packages, so that a missing one is reported at once."""
        moses_tools(self.language)

    def __call__(self, text: str) -> str:
        """Prepare one sentence.

        Args:
            text: The sentence.

        Returns:
            The prepared sentence.
        """
        moses = moses_tools(self.language)
        if self.lowercase:
            text = text.replace("\0", " ").lower()  # as `clean_text`
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
        """Detokenise a prepared sentence.

        Args:
            text: A sentence whose words are separated by spaces.

        Returns:
            Running text; the unchanged text if `tokenize` is False.
        """
        if not self.tokenize:
            return text
        return moses_tools(self.language)["detokenizer"].detokenize(
            text.split(), return_str=True, unescape=False
        )


def preprocessor(data: DataConfig, language: str | None) -> Preprocessor | None:
    """Return the preprocessor of a language, or None without any step."""
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
    """Return the preprocessors of source and target text."""
    return (
        preprocessor(data, data.source_language),
        preprocessor(data, data.target_language),
    )


@functools.cache
def moses_tools(language: str | None) -> dict[str, Any]:
    """Load the normalizer, tokenizer and detokenizer of a language, once."""
    language = re.split("[-_]", (language or "en").lower())[0]
    with needs("sacremoses"):
        import sacremoses
    return {
        "normalizer": sacremoses.MosesPunctNormalizer(lang=language),
        "tokenizer": sacremoses.MosesTokenizer(lang=language),
        "detokenizer": sacremoses.MosesDetokenizer(lang=language),
    }
