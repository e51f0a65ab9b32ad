"""Checks, filters and hashes of pairs of sentences, in any process.

Without TensorFlow, which a process would take seconds to load.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable

from luong_keras.config.data import FilterConfig
from luong_keras.data.corpus import SIDES
from luong_keras.data.sources.source_kinds import MORE_COLUMNS, one_line
from luong_keras.missing_package import needs

Preprocess = Callable[[str], str]
Row = tuple[str, str | None, str | None]
Checked = tuple[bytes, bytes, int] | str

_NO_FILTERS = FilterConfig()
# A sentence of more characters is none: a file without line ends, say. To
# prepare and to tokenize it would take all memory.
LONGEST = 20_000
SHOWN = 5  # So many places are kept for each reason.
REASONS = {
    "empty source": "the source sentence is empty",
    "empty target": "the target sentence is empty",
    "not UTF-8": "a sentence is not UTF-8 (iconv -f LATIN1 reads Latin-1)",
    "no second column": "there is no second column, by tabs, or in .csv commas",
    MORE_COLUMNS: "there is a tab or comma too many",
    "no source": "the record has no source sentence",
    "no target": "the record has no target sentence",
    "no record": "the line cannot be read as a record",
    "too long": f"a sentence has more than {LONGEST:,} characters",
}


def check_pairs(
    rows: Iterable[Row],
    preprocess: tuple[Preprocess | None, Preprocess | None],
    filters: FilterConfig,
) -> list[Checked]:
    """Check a chunk of pairs, in any process alike.

    Args:
        rows: Source, target, and why it is no pair, if it is none.
        preprocess: Applied to the sentences of each side, or None.
        filters: Which pairs are left out on purpose.

    Returns:
        Of each pair its lines and, where duplicates are left out, its
        hash; or the reason to leave it out.
    """
    return [check_pair(*row, preprocess, filters) for row in rows]


def check_pair(
    source: str,
    target: str | None,
    problem: str | None = None,
    preprocess: tuple[Preprocess | None, Preprocess | None] = (None, None),
    filters: FilterConfig = _NO_FILTERS,
) -> Checked:
    """Check one pair, as `check_pairs` does."""
    if problem is not None:
        return problem
    if target is None:
        return "no second column"
    texts = []
    for side, text, prepare in zip(
        SIDES, (source, target), preprocess, strict=True
    ):
        if len(text) > LONGEST:
            return "too long"
        # As the graph does with the text of a translation.
        text = one_line(text)
        if prepare is not None:
            text = prepare(text)
        text = _stripped(text)
        if not text or text.isspace():
            return f"empty {side}"
        texts.append(text)
    reason = filtered(texts[0], texts[1], filters)
    if reason is not None:
        return reason
    try:
        lines = [text.encode() for text in texts]
    except UnicodeEncodeError:
        return "not UTF-8"
    return lines[0], lines[1], pair_hash(*texts) if filters.duplicates else 0


def _stripped(text: str) -> str:
    # Only ASCII spaces are cut off, but any white space counts as empty.
    return one_line(text).strip(" ")


def shown_pair(pair: tuple) -> str:
    """A pair for a report, not all of a long one."""
    return " ||| ".join(repr(side and side[:80]) for side in pair)


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
    """Test whether at least half of a text's letters are of a script.

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
        >>> is_of_script("World", "Cyrillic"), is_of_script("World", "Latn")
        (False, True)
    """
    all_letters, own_letters = _letters(script)
    if text.isascii():
        # Most text is; all its letters are Latin.
        return bool(own_letters("a")) or not any(map(str.isalpha, text))
    letters = len(all_letters(text))
    return 2 * len(own_letters(text)) >= letters


@functools.cache
def _letters(script: str) -> tuple[Callable, Callable]:
    """Finds all letters of a text, and those of a script."""
    with needs("regex"):
        import regex
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


def pair_hash(source: str, target: str) -> int:
    """A number that depends on nothing but the pair, without spaces around."""
    text = f"{_stripped(source)}\t{_stripped(target)}"
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
