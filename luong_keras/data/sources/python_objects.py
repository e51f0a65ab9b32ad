"""Python objects that hold pairs: data frames, data sets, lists."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from luong_keras.data.sources.columns import (
    Columns,
    RequestedColumns,
    choose_columns,
    choose_fields,
    field,
)


def read_frame(
    frame: Any, requested: RequestedColumns
) -> tuple[Iterable[tuple[Any, Any]], Columns]:
    """Return the pairs of two columns; missing values are not text."""
    names = [str(name) for name in frame.columns]
    columns = choose_columns(names, requested, "the DataFrame")
    indices = columns.source, columns.target
    sides = (frame.iloc[:, index] for index in indices)
    return zip(*sides, strict=True), columns


_ROWS_PER_CALL = 1000


def read_tensorflow(
    dataset: Any, requested: RequestedColumns
) -> tuple[Iterable[tuple[Any, Any]], Columns]:
    """Return the pairs of a data set of single elements or batches."""
    from luong_keras.with_tensorflow import tf

    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "Expected: a tf.data.Dataset that ends; training repeats its pairs "
            "itself. Received: one that repeats for ever. Leave out `repeat`, "
            "or end it with `take`."
        )
    # A number stands for a tensor that is not text.
    example = tf.nest.map_structure(
        lambda spec: "" if _is_text(spec) else 0.0, dataset.element_spec
    )
    fields = choose_fields(example, requested, "the tf.data.Dataset")
    specs: list[Any] = [
        field(dataset.element_spec, side)
        for side in (fields.source, fields.target)
    ]
    ranks = {spec.shape.rank if _is_text(spec) else None for spec in specs}
    if ranks == {0}:
        dataset = dataset.batch(_ROWS_PER_CALL)
    elif ranks != {1}:
        raise ValueError(
            "Expected: a tf.data.Dataset whose elements are pairs of strings, "
            "or batches of them: tensors of rank 0 or 1. Received: "
            f"{dataset.element_spec}."
        )
    return _pairs_of_tensorflow(dataset, fields), fields


def _is_text(spec: Any) -> bool:
    return getattr(getattr(spec, "dtype", None), "name", "") == "string"


def _pairs_of_tensorflow(
    dataset: Any, fields: Columns
) -> Iterator[tuple[Any, Any]]:
    for batch in dataset.as_numpy_iterator():
        sides = (field(batch, fields.source), field(batch, fields.target))
        yield from zip(
            *(side.tolist() for side in sides),  # type: ignore[attr-defined]
            strict=True,
        )


def read_iterable(
    pairs: Iterable[Any], requested: RequestedColumns
) -> tuple[Iterable[tuple[Any, Any]], Columns]:
    """Return the pairs, in the form of the first pair or record."""
    if isinstance(pairs, Mapping):
        raise ValueError(
            "Expected: pairs or records, such as one split of a DatasetDict. "
            f"Received: a {type(pairs).__name__} of "
            f"{', '.join(map(repr, pairs))}. Give one of them, such as "
            f"data[{next(iter(pairs), 'train')!r}]."
        )
    rows = iter(pairs)
    first = list(itertools.islice(rows, 1))
    rows = itertools.chain(first, rows)
    if not first or not isinstance(first[0], Mapping):
        return _check_pairs(rows), Columns((0,), (1,))
    fields = choose_fields(first[0], requested, "the records")
    return _pairs_of_records(rows, fields), fields


def _check_pairs(rows: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for number, row in enumerate(rows, start=1):
        try:
            texts = row[0], row[1]
            is_pair = not isinstance(row, str) and len(row) == 2
        except (TypeError, KeyError, IndexError):
            is_pair = False
        if not is_pair or not all(
            isinstance(text, str | bytes) for text in texts
        ):
            raise ValueError(
                "Expected: pairs of a source and a target sentence, str or "
                f"bytes. Received: {row!r:.200} as pair {number}."
            )
        yield texts


def _pairs_of_records(
    rows: Iterable[Any], fields: Columns
) -> Iterator[tuple[Any, Any]]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise ValueError(
                "Expected: records with named fields, as the first one. "
                f"Received: {row!r:.200} as record {number}."
            )
        yield field(row, fields.source), field(row, fields.target)
