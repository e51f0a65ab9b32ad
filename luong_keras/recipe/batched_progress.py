"""Many sentences through a translator, with a bar."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from luong_keras.inference.translation import places_by_length
from luong_keras.progress import progress_bar
from luong_keras.truncation import TruncationInParts

Answer = TypeVar("Answer")


def with_batched_progress(
    answer: Callable[..., Sequence[Answer]],
    *columns: Sequence[str],
    size: int,
    what: str,
) -> list[Answer]:
    """Runs a method of a translator batch by batch, with a bar.

    The batches are those that it would make of all lines itself, so that the
    answers are the same to the last digit. What it warns of as cut becomes one
    line on standard error.

    Args:
        answer: a method of a translator.
        columns: its arguments, a text a row; it sorts by the last of them.
        size: its batch size.
        what: the step, for the bar.

    Returns:
        The answers, in the order of the rows.

    Example:
        >>> with_batched_progress(
        ...     lambda lines: [len(l) for l in lines], ["bc", "a"],
        ...     size=1, what="measuring")
        [2, 1]
    """
    answers: list[Any] = [None] * len(columns[-1])
    shown: Any = contextlib.nullcontext(lambda count: None)
    batches: Iterable[Sequence[int]] = [range(len(answers))]
    if len(answers) > size:
        shown = progress_bar(what, len(answers))
        batches = places_by_length(columns[-1], size)
    with shown as advance, TruncationInParts() as cut:
        for places in batches:
            cut.part = places
            rows = [[column[i] for i in places] for column in columns]
            for place, found in zip(places, answer(*rows), strict=True):
                answers[place] = found
            advance(len(places))
    if cut.places.any:
        print(f"{what}: {cut.places.message()}", file=sys.stderr)
    return answers
