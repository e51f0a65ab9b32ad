"""Language detection by script."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from luong_keras.missing_package import missing_package

# Scripts that one language is written in, or that have no spaces between
# words; beside them Chinese, and Japanese by its kana.
_LANGUAGES = {
    "Hangul": "ko",
    "Thai": "th",
    "Lao": "lo",
    "Khmer": "km",
    "Myanmar": "my",
    "Tibetan": "bo",
}
# Names and terms in Latin letters are many in some Chinese text.
_SHARE = 0.3
_SHARE_OF_KANA = 0.1


def language_of_script(lines: Iterable[str]) -> str | None:
    """Detect the language of a text by its script.

    Args:
        lines: the text.

    Returns:
        `"zh"`, `"ja"`, `"ko"`, `"th"`, `"lo"`, `"km"`, `"my"` or `"bo"`; None
        for every other script, which sets words apart by spaces.

    Raises:
        ImportError: if `regex` is not installed.

    Example:
        >>> language_of_script(["我们买 iPhone。"])
        'zh'
        >>> language_of_script(["東京に行く"]), language_of_script(["I am"])
        ('ja', None)
    """
    text = "".join(lines)
    if text.isascii():
        return None
    total = len(_letters().findall(text))
    count = {
        script: len(_of_script(script).findall(text))
        for script in ("Han", "Hiragana", "Katakana", *_LANGUAGES)
    }
    kana = count["Hiragana"] + count["Katakana"]
    if count["Han"] + kana > _SHARE * total:
        share = kana / (count["Han"] + kana)
        return "ja" if share > _SHARE_OF_KANA else "zh"
    script = max(_LANGUAGES, key=count.__getitem__)
    return _LANGUAGES[script] if count[script] > _SHARE * total else None


@functools.cache
def _letters() -> Any:
    return _regex().compile(r"[\p{L}\p{M}]")


@functools.cache
def _of_script(script: str) -> Any:
    return _regex().compile(rf"(?V1)[\p{{Script={script}}}&&[\p{{L}}\p{{M}}]]")


def _regex() -> Any:
    try:
        import regex
    except ImportError as error:
        raise missing_package("regex", error) from error
    return regex
