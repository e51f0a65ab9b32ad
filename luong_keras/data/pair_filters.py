"""Which pairs of sentences are not worth training on."""

from __future__ import annotations

import functools
from collections.abc import Callable

from luong_keras.config_data import FilterConfig
from luong_keras.missing_package import missing_package

# By reason, what is left out, for the report.
FILTERED = {
    "length ratio": "one side is too long for the other",
    "identical sides": "both sides are the same",
    "source script": "fewer than half of the source's letters are of its "
    "script",
    "target script": "fewer than half of the target's letters are of its "
    "script",
    "duplicate": "the pair came before",
}


def filtered(source: str, target: str, filters: FilterConfig) -> str | None:
    """Why a pair is left out, of the reasons that it tells by itself.

    Args:
        source: The source sentence, not empty.
        target: The target sentence, not empty.
        filters: What is asked for.

    Returns:
        A key of `FILTERED`, or None for a pair to keep.

    Example:
        >>> filters = FilterConfig(length_ratio=2, identical=True)
        >>> filtered("a b c", "x", filters), filtered("a", "a", filters)
        ('length ratio', 'identical sides')
        >>> filtered("a b", "x", filters)
    """
    if filters.identical and source == target:
        return "identical sides"
    ratio = filters.length_ratio
    if ratio is not None:
        words = filters.length_unit == "words"
        sizes = [
            len(text.split()) if words else len(text)
            for text in (source, target)
        ]
        if max(sizes) > ratio * min(sizes):
            return "length ratio"
    if filters.scripts is not None:
        for side, text, script in zip(
            ("source", "target"), (source, target), filters.scripts, strict=True
        ):
            if not is_of_script(text, script):
                return f"{side} script"
    return None


def is_of_script(text: str, script: str) -> bool:
    """Whether at least half of a text's letters are of a script.

    Args:
        text: The text; one without letters is of every script.
        script: Its name in Unicode, or several, joined by `+`.

    Raises:
        ValueError: There is no such script.

    Example:
        >>> is_of_script("Привет, World", "Cyrillic")
        True
        >>> is_of_script("東京タワー", "Han+Hiragana+Katakana")
        True
        >>> is_of_script("World", "Cyrillic")
        False
    """
    if text.isascii():
        # Most text is; all its letters are Latin.
        letters = sum(map(str.isalpha, text))
        return not letters or "latin" in script.lower().split("+")
    all_letters, own_letters = _letters(script)
    letters = len(all_letters(text))
    return 2 * len(own_letters(text)) >= letters


@functools.cache
def _letters(script: str) -> tuple[Callable, Callable]:
    """Finds all letters of a text, and those of a script."""
    try:
        import regex
    except ImportError as error:
        raise missing_package("regex", error) from error
    names = [name.strip() for name in script.split("+")]
    try:
        classes = "".join(rf"\p{{Script={name}}}" for name in names)
        own = regex.compile(rf"(?V1)[[{classes}]&&\p{{L}}]")
    except regex.error as error:
        raise ValueError(
            "data.filters.scripts names scripts of Unicode, such as Latin, "
            "Cyrillic, Greek, Arabic, Han+Hiragana+Katakana. Received: "
            f"{script!r} ({error})."
        ) from error
    return regex.compile(r"\p{L}").findall, own.findall


def check_scripts(filters: FilterConfig) -> None:
    """Raises ValueError where there is no such script."""
    for script in filters.scripts or ():
        _letters(script)
