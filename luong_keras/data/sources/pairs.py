"""Lists and iterators of pairs, or of records with named fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from luong_keras.data.sources.columns import Wanted
from luong_keras.data.sources.records import Fields, chosen_fields, field
from luong_keras.data.sources.source_kinds import ObjectKind


def matches(thing: Any) -> bool:
    """Whether it can be gone through; the kind to be asked last."""
    return isinstance(thing, Iterable) and not isinstance(thing, str | bytes)


def read(
    pairs: Iterable[Any], wanted: Wanted
) -> tuple[Iterable[tuple[Any, Any]], str | None]:
    """The pairs; those of the first record's form."""
    rows = iter(pairs)
    first = list(itertools.islice(rows, 1))
    rows = itertools.chain(first, rows)
    if not first or not isinstance(first[0], Mapping):
        return _checked(rows), None
    fields = chosen_fields(first[0], wanted, "the records")
    return _of_records(rows, fields), fields.note


def _checked(rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(rows, start=1):
        try:
            whole = not isinstance(row, str) and len(row) == 2
        except TypeError:
            whole = False
        if not whole or not all(isinstance(text, str) for text in row):
            raise ValueError(
                "Expected: pairs of a source and a target sentence, both str. "
                f"Received: {row!r:.200} as pair {number}."
            )
        yield row[0], row[1]


def _of_records(
    rows: Iterable[Any], fields: Fields
) -> Iterator[tuple[Any, Any]]:
    for row in rows:
        yield field(row, fields.source), field(row, fields.target)


KIND = ObjectKind(matches, read)
