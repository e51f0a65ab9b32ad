"""Records of two sentences: JSON, data frames, data sets, lists."""

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from luong_keras.data.sources.columns import (
    Columns,
    RequestedColumns,
    choose_columns,
    choose_fields,
    field,
    is_pair,
)
from luong_keras.data.sources.source_kinds import (
    PlacedPair,
    TextSource,
    make_pair,
)
from luong_keras.files.text_lines import read_lines

_LINES_SEARCHED = 20  # lines searched for the first readable record


def open_json_lines(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a file of records; its first record determines the fields."""
    lines = read_lines(path, "surrogateescape")
    for line in itertools.islice(lines, _LINES_SEARCHED):
        try:
            # Encoded, because a line that is not UTF-8 is skipped, too.
            record = json.loads(line.encode())
        except (ValueError, RecursionError):
            continue
        fields = choose_fields(record, requested, path.name)
        read = functools.partial(_read_json_lines, path, fields)
        return TextSource(read, fields.note, fields.languages)
    raise ValueError(
        f"Expected: in {path}, a JSON record a line, such as "
        '{"source": "a cat", "target": "eine Katze"}. Received: no such line '
        f"among the first {_LINES_SEARCHED}."
    )


def _read_json_lines(
    path: Path, fields: Columns, skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Read the pairs of a file."""
    errors = "surrogateescape" if skip_bad_lines else "strict"
    for number, line in enumerate(read_lines(path, errors), start=1):
        place = f"{path.name}:{number}"
        location = f"Line {number} of {path}"
        if not line.strip():
            continue
        problem = "is neither a record nor a pair"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            record, problem = None, f"is not JSON ({error})"
        if isinstance(record, dict) or is_pair(record):
            yield make_pair(
                field(record, fields.source),
                field(record, fields.target),
                place,
                not skip_bad_lines,
                location,
            )
        elif skip_bad_lines:
            yield PlacedPair(None, None, place, "no record")
        else:
            raise ValueError(
                f"{location} {problem}. Expected: a source and a target, as a "
                f"record or a pair. Received: {line[:80]!r}. Correct it, or "
                "remove it."
            )


def read_frame(
    frame: Any, requested: RequestedColumns
) -> tuple[Iterable[tuple[Any, Any]], Columns]:
    """Return the pairs of two columns; missing values are not text."""
    names = [str(name) for name in frame.columns]
    columns = choose_columns(names, requested, "the DataFrame")
    source = frame.iloc[:, columns.source]
    target = frame.iloc[:, columns.target]
    return zip(source, target, strict=True), columns


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
    specs = [
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
    batches = (
        zip(
            field(batch, fields.source).tolist(),
            field(batch, fields.target).tolist(),
            strict=True,
        )
        for batch in dataset.as_numpy_iterator()
    )
    return itertools.chain.from_iterable(batches), fields


def _is_text(spec: Any) -> bool:
    return getattr(getattr(spec, "dtype", None), "name", "") == "string"


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
    are_named = bool(first) and isinstance(first[0], Mapping)
    fields = Columns((0,), (1,))
    if are_named:
        fields = choose_fields(first[0], requested, "the records")
    rows = itertools.chain(first, rows)
    return _pairs_of_rows(rows, fields, are_named), fields


def _pairs_of_rows(
    rows: Iterable[Any], fields: Columns, are_named: bool
) -> Iterator[tuple[Any, Any]]:
    for number, row in enumerate(rows, start=1):
        pair = field(row, fields.source), field(row, fields.target)
        if are_named:
            is_like_first = isinstance(row, Mapping)
        else:
            are_texts = all(isinstance(text, str | bytes) for text in pair)
            is_like_first = are_texts and type(row) is not str and len(row) == 2
        if not is_like_first:
            raise ValueError(
                "Expected: pairs of a source and a target sentence, str or "
                "bytes, or records with named fields, all like the first. "
                f"Received: {row!r:.200} as pair {number}."
            )
        yield pair
