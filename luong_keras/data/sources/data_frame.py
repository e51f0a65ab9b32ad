"""Data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from luong_keras.data.sources.columns import Wanted, chosen_columns
from luong_keras.data.sources.source_kinds import ObjectKind, is_of


def matches(thing: Any) -> bool:
    """Whether it is a `pandas.DataFrame`."""
    return is_of(thing, "pandas", "DataFrame")


def read(
    frame: Any, wanted: Wanted
) -> tuple[Iterable[tuple[Any, Any]], str | None]:
    """The pairs of two columns; what is missing there is no text."""
    names = [str(name) for name in frame.columns]
    source, target, note = chosen_columns(names, wanted, "the DataFrame")
    sides = (frame.iloc[:, place] for place in (source, target))
    return zip(*sides, strict=True), note


KIND = ObjectKind(matches, read)
