"""Data sets of Hugging Face's `datasets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from luong_keras.data.sources.columns import Wanted
from luong_keras.data.sources.records import Fields, chosen_fields, field
from luong_keras.data.sources.source_kinds import ObjectKind, is_of

_ROWS_PER_CALL = 1000


def matches(thing: Any) -> bool:
    """Whether it is a `Dataset`, an `IterableDataset` or several splits."""
    return any(
        is_of(thing, "datasets", name)
        for name in (
            *("Dataset", "IterableDataset"),
            *("DatasetDict", "IterableDatasetDict"),
        )
    )


def read(
    dataset: Any, wanted: Wanted
) -> tuple[Iterable[tuple[Any, Any]], str | None]:
    """The pairs of two columns, or of a column that has both languages."""
    if isinstance(dataset, dict):
        raise ValueError(
            "Expected: one split of a data set of Hugging Face. Received: "
            f"a DatasetDict of {', '.join(map(repr, dataset))}. Give one of "
            f"them, such as dataset[{next(iter(dataset), 'train')!r}]."
        )
    first = next(iter(dataset), None)
    if first is None:
        raise ValueError(
            "Expected: a data set of sentence pairs. Received: one without "
            "rows."
        )
    fields = chosen_fields(first, wanted, "the Dataset")
    return _pairs(dataset, fields), fields.note


def _pairs(dataset: Any, fields: Fields) -> Iterator[tuple[Any, Any]]:
    sides = fields.source, fields.target
    dataset = dataset.select_columns(list(dict.fromkeys(s[0] for s in sides)))
    for batch in dataset.iter(batch_size=_ROWS_PER_CALL):
        yield from zip(
            *(
                [field(value, side[1:]) for value in batch[side[0]]]
                for side in sides
            ),
            strict=True,
        )


KIND = ObjectKind(matches, read)
