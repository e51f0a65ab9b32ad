"""Checks, filters and hashes of sentence pairs, in any process.

The module does not import TensorFlow, which takes seconds in each process.
"""

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
# A longer text is not a sentence but, for example, a file without line ends.
# Its preparation and tokenisation would take all memory.
MAX_CHARACTERS = 20_000
MAX_EXAMPLES = 5  # places kept for each reason
REASONS = {
    "empty source": "the source sentence is empty",
    "empty target": "the target sentence is empty",
    "not UTF-8": "a sentence is not UTF-8 (iconv -f LATIN1 reads Latin-1)",
    "no second column": "there is no second column, after a tab (in .csv "
    "after a comma)",
    MORE_COLUMNS: "there is a tab or comma too many",
    "no source": "the record has no source sentence",
    "no target": "the record has no target sentence",
    "no record": "the line cannot be read as a record",
    "too long": f"a sentence has more than {MAX_CHARACTERS:,} characters",
}


def check_pairs(
    rows: Iterable[Row],
    preprocess: tuple[Preprocess | None, Preprocess | None],
    filters: FilterConfig,
) -> list[Checked]:
    """Check a chunk of pairs; the result is the same in any process.

    Args:
        rows: Source, target, and the reason why they are no pair, or None.
        preprocess: Applied to the sentences of each side, or None.
        filters: Which good pairs are left out.

    Returns:
        For each pair its two lines and their hash, or the reason to leave it
        out.
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
        if len(text) > MAX_CHARACTERS:
            return "too long"
        # The graph of the translator does the same with its input.
        text = one_line(text)
        if prepare is not None:
            text = prepare(text)
        text = _clean_spaces(text)
        if not text or text.isspace():
            return f"empty {side}"
        texts.append(text)
    reason = filter_reason(texts[0], texts[1], filters)
    if reason is not None:
        return reason
    try:
        lines = [text.encode() for text in texts]
    except UnicodeEncodeError:
        return "not UTF-8"
    return lines[0], lines[1], pair_hash(*texts)


def _clean_spaces(text: str) -> str:
    """Replace control characters, and remove the ASCII spaces at the ends."""
    return one_line(text).strip(" ")


def format_pair(pair: tuple) -> str:
    """Format a pair for a report; long sentences are cut."""
    return " ||| ".join(repr(side and side[:80]) for side in pair)


# The reasons of filters, and their texts in reports.
FILTERED = {
    "length ratio": "one side is too long for the other",
    "identical sides": "both sides are the same",
    "source script": "fewer than half of the source's letters are of its "
    "script",
    "target script": "fewer than half of the target's letters are of its "
    "script",
    "duplicate": "the pair came before",
}


def filter_reason(
    source: str, target: str, filters: FilterConfig
) -> str | None:
    """Return why a filter leaves a pair out, other than as a duplicate.

    Args:
        source: The source sentence, not empty.
        target: The target sentence, not empty.
        filters: The settings of the filters.

    Returns:
        A key of `FILTERED`, or None for a pair to keep.

    Example:
        >>> filters = FilterConfig(length_ratio=2, identical=True)
        >>> filter_reason("a b c", "x", filters)
        'length ratio'
        >>> filter_reason("a", "a", filters)
        'identical sides'
        >>> filter_reason("a b", "x", filters)
    """
    if filters.identical and source == target:
        return "identical sides"
    ratio = filters.length_ratio
    if ratio is not None:
        in_words = filters.length_unit == "words"
        sizes = [
            len(text.split()) if in_words else len(text)
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
        text: The text; a text without letters is of every script.
        script: A Unicode name of a script, or several, joined by `+`.

    Raises:
        ValueError: If the script does not exist.

    Example:
        >>> is_of_script("Привет, World", "Cyrillic")
        True
        >>> is_of_script("東京タワー", "Han+Hiragana+Katakana")
        True
        >>> is_of_script("World", "Cyrillic"), is_of_script("World", "Latn")
        (False, True)
    """
    find_letters, find_script_letters = _letter_finders(script)
    if text.isascii():
        # A fast path for most text: all ASCII letters are Latin.
        return bool(find_script_letters("a")) or not any(map(str.isalpha, text))
    letters = len(find_letters(text))
    return 2 * len(find_script_letters(text)) >= letters


@functools.cache
def _letter_finders(script: str) -> tuple[Callable, Callable]:
    """Return functions that find all letters, and letters of a script."""
    with needs("regex"):
        import regex
    names = [name.strip() for name in script.split("+")]
    try:
        classes = "".join(rf"\p{{Script={name}}}" for name in names)
        pattern = regex.compile(rf"(?V1)[[{classes}]&&\p{{L}}]")
    except regex.error as error:
        raise ValueError(
            "data.filters.scripts names scripts of Unicode, such as Latin, "
            "Cyrillic, Greek, Arabic, Han+Hiragana+Katakana. Received: "
            f"{script!r} ({error})."
        ) from error
    return regex.compile(r"\p{L}").findall, pattern.findall


def check_scripts(filters: FilterConfig) -> None:
    """Check that all scripts of the filters exist, or raise ValueError."""
    for script in filters.scripts or ():
        _letter_finders(script)


def pair_hash(source: str, target: str) -> int:
    """Hash a pair, without the spaces around its sentences."""
    text = f"{_clean_spaces(source)}\t{_clean_spaces(target)}"
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
