"""Kinds of sources, and the pairs that they give."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.data.sources.columns import RequestedColumns

MORE_COLUMNS = "more columns than the first line"
# Control characters and what other programs take for the end of a line.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class PlacedPair(tuple):
    """A source and a target sentence that know where they stand.

    Attributes:
        place: The file's name and the line's number, such as `train.en:7`.
        part: Which of several sources it is from, from 0.
        problem: Why it is no pair, where it is none.
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
        """Makes the pair."""
        pair = super().__new__(cls, (source, target))
        pair.place = place
        if problem is not None:
            pair.problem = problem
        return pair


def one_line(text: str) -> str:
    r"""The text without line ends and other control characters.

    Example:
        >>> one_line("two\r\nlines\tand a tab")
        'two lines and a tab'
    """
    # Most text has none, which is found sooner.
    return text if text.isprintable() else CONTROL.sub(" ", text)


def text_or_none(value: object) -> str | None:
    """The cell of a record, as text of one line.

    Bytes are taken for UTF-8, and whole numbers as they are written; what is
    nothing of that is no sentence.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = str(value)
    return one_line(value) if isinstance(value, str) else None


def checked_record(
    source: object, target: object, place: str, strict: bool, where: str
) -> PlacedPair:
    """The pair that two values of a record make.

    Args:
        source: What stands in the column of the source.
        target: The same of the target.
        place: For the report, such as `train.jsonl:7`.
        strict: Whether a missing sentence is an error; else the pair is
            marked, and counted by who writes the corpus.
        where: The place in words, such as `Line 7 of train.jsonl`.

    Returns:
        The pair.

    Raises:
        ValueError: One of the values is no text.
    """
    texts = text_or_none(source), text_or_none(target)
    for side, text, value in zip(
        ("source", "target"), texts, (source, target), strict=True
    ):
        if text is not None:
            continue
        if strict:
            raise ValueError(
                f"{where} has no {side} sentence. Expected: text. Received: "
                f"{value!r:.80}. Correct it, or remove it."
            )
        return PlacedPair(*texts, place, f"no {side}")
    return PlacedPair(*texts, place)


@dataclass(frozen=True)
class TextSource:
    """Sentence pairs of files, which can be read again.

    Attributes:
        read: Gives the pairs; with True, bad lines are marked instead of an
            error.
        note: What to tell the user of the columns, or None.
    """

    read: Callable[[bool], Iterable[PlacedPair]]
    note: str | None = None


# Looks at the beginning of a file that holds both sides, and decides how it is
# read: which columns, say.
FileKind = Callable[[Path, RequestedColumns], TextSource]


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object of Python that holds pairs.

    Attributes:
        matches: Whether an object is of this kind; imports nothing.
        read: The pairs of one, of texts or, where there is none, of None;
            and a note of what was guessed, or None.
    """

    matches: Callable[[Any], bool]
    read: Callable[
        [Any, RequestedColumns], tuple[Iterable[tuple[Any, Any]], str | None]
    ]


def is_of(thing: object, package: str, name: str) -> bool:
    """Whether an object's class, or one that it inherits, is this one.

    Without importing the package: who gives such an object has done so.

    Example:
        >>> from collections import OrderedDict
        >>> is_of(OrderedDict(), "collections", "OrderedDict")
        True
    """
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(thing).__mro__
    )
