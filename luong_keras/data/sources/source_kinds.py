"""Kinds of sources, and the pairs that they yield."""

import numbers
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.data.sources.columns import Columns, RequestedColumns

MORE_COLUMNS = "more columns than the first line"
BYTE_ORDER_MARK = "\ufeff"
# Control characters, and characters that some programs treat as line ends.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class PlacedPair(tuple):
    """A source and a target sentence with their place in a file.

    Attributes:
        place: The name of the file and the number of the line, such as
            `train.en:7`.
        part: The number of the source of the pair, from 0.
        problem: The reason why this is not a valid pair, or None.
    """

    place: str
    part: int = 0
    problem: str | None = None

    def __new__(
        cls,
        source: str | None,
        target: str | None,
        place: str,
        problem: str | None = None,
    ):
        """Make the pair."""
        pair = super().__new__(cls, (source, target))
        pair.place = place
        if problem is not None:
            pair.problem = problem
        return pair


def one_line(text: str) -> str:
    r"""Replace line ends and other control characters by spaces.

    Byte order marks are removed.

    Example:
        >>> one_line("\ufefftwo\r\nlines\tand a tab")
        'two lines and a tab'
    """
    # A fast path: most text has no control characters.
    if text.isprintable():
        return text
    return CONTROL.sub(" ", text.replace(BYTE_ORDER_MARK, ""))


def text_or_none(value: object) -> str | None:
    """Convert a value of a record to text of one line, or None.

    Bytes are decoded as UTF-8, and integers become digits. Other values that
    are not text give None.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = str(value)
    return one_line(value) if isinstance(value, str) else None


def make_pair(
    source: object, target: object, place: str, strict: bool, location: str
) -> PlacedPair:
    """Make a pair of two values of a record.

    Args:
        source: The value of the source column.
        target: The value of the target column.
        place: The place for reports, such as `train.jsonl:7`.
        strict: Whether a missing sentence is an error; otherwise the pair is
            marked, and the writer of the corpus counts it.
        location: The place in words, such as `Line 7 of train.jsonl`.

    Returns:
        The pair.

    Raises:
        ValueError: If `strict` and one of the values is not text.
    """
    texts = text_or_none(source), text_or_none(target)
    for side, text, value in zip(
        ("source", "target"), texts, (source, target), strict=True
    ):
        if text is not None:
            continue
        if strict:
            raise ValueError(
                f"{location} has no {side} sentence. Expected: text. Received: "
                f"{value!r:.80}. Correct it, or remove it."
            )
        return PlacedPair(*texts, place, f"no {side}")
    return PlacedPair(*texts, place)


@dataclass(frozen=True)
class TextSource:
    """Sentence pairs of files, which can be read repeatedly.

    Attributes:
        read: A function that returns the pairs; with True, bad lines are
            marked instead of raising an error.
        note: A message for the user about the columns, or None.
        languages: The codes of the languages that name the columns, the
            source first, or None.
    """

    read: Callable[[bool], Iterable[PlacedPair]]
    note: str | None = None
    languages: tuple[str, str] | None = None


# A function that looks at the beginning of a file of both sides and decides how
# to read it, for example which columns.
FileKind = Callable[[Path, RequestedColumns], TextSource]

# A function that returns the pairs of an object, with None for a missing text,
# and the chosen fields.
ObjectReader = Callable[
    [Any, RequestedColumns], tuple[Iterable[tuple[Any, Any]], Columns]
]
