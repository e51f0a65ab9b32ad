"""Files of columns with commas between them, quoted where need be."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from luong_keras.data.parallel_text import (
    check_is_file,
    decode_line,
    raw_lines,
)
from luong_keras.data.sources.columns import Columns, Wanted
from luong_keras.data.sources.placed_pair import PlacedPair, one_line
from luong_keras.data.sources.source_kinds import FileKind
from luong_keras.data.sources.tsv import first_two_or_named

# The one that cuts the first line into most cells.
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class CsvColumns(Columns):
    """The two columns of such a file, and what stands between them."""

    delimiter: str = ","


def choose(path: Path, wanted: Wanted) -> CsvColumns:
    """Finds the columns and what is between them by the first record."""
    check_is_file(path)
    records = []
    for delimiter in _DELIMITERS:
        record = next(_records(path, delimiter, "surrogateescape"), (1, []))
        records.append((delimiter, record[1]))
    delimiter, cells = max(records, key=lambda record: len(record[1]))
    found = first_two_or_named(cells, wanted, path)
    if wanted.columns is None and not found.header and len(cells) > 2:
        raise ValueError(
            f"The columns of {path} cannot be guessed. Expected: two columns, "
            "or a first line with columns called source and target, or by the "
            f"languages {' and '.join(wanted.languages)}. Received: "
            f"{cells[:12]!r:.200}. Name two of them, the source first: --set "
            'data.columns=["NAME","NAME"].'
        )
    note = found.note
    if note is None:
        note = f"{path.name}: no header, the first column is the source"
    if delimiter != ",":
        note += f", {delimiter!r} between columns"
    return CsvColumns(found.source, found.target, found.header, note, delimiter)


def read(
    path: Path, columns: CsvColumns, skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Reads the pairs of a file; line ends inside of quotes become spaces."""
    errors = "surrogateescape" if skip_bad_lines else "strict"
    last = max(columns.source, columns.target)
    for count, (number, cells) in enumerate(
        _records(path, columns.delimiter, errors)
    ):
        if not cells or (columns.header and count == 0):
            continue  # An empty line is no record.
        place = f"{path.name}:{number}"
        if len(cells) > last:
            yield PlacedPair(
                one_line(cells[columns.source]),
                one_line(cells[columns.target]),
                place,
            )
        elif skip_bad_lines:
            yield PlacedPair(cells[0], None, place)
        else:
            raise ValueError(
                f"Line {number} of {path} has not {last + 1} columns. "
                f"Expected: source and target, {columns.delimiter!r} between "
                f"them. Received: {cells!r:.80}. Correct the line, or remove "
                "it."
            )


def _records(
    path: Path, delimiter: str, errors: str
) -> Iterator[tuple[int, list[str]]]:
    """Each record, with the number of its first line."""
    lines = (
        # The end of a line may stand inside of quotes.
        decode_line(line, number, path, errors) + "\n"
        for number, line in enumerate(raw_lines(path), start=1)
    )
    reader = csv.reader(lines, delimiter=delimiter, strict=False)
    number = 1
    try:
        for cells in reader:
            yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"The record that begins in line {number} of {path} cannot be "
            f"read ({error}). Expected: quotes that are closed, and written "
            "twice inside of quotes. Correct it, or save the file as `.tsv`."
        ) from error


KIND = FileKind(".csv", choose, read)
