"""Files of columns with commas between them, quoted where need be."""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
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
from luong_keras.data.sources.tsv import (
    first_two_or_named,
    pair_of_cells,
)

_DELIMITERS = ",;\t"
_FIRST = 20  # records, by which the delimiter is found


@dataclass(frozen=True)
class CsvColumns(Columns):
    """The two columns of such a file, and what stands between them.

    Attributes:
        delimiter: What stands between them.
        stated: Whether the first line says so, and is no record.
    """

    delimiter: str = ","
    stated: bool = False


def choose(path: Path, wanted: Wanted) -> CsvColumns:
    """Finds the columns and what is between them by the first records."""
    check_is_file(path)
    stated = _stated_delimiter(path)
    delimiter, cells = _first_record(path, stated or _DELIMITERS)
    found = first_two_or_named(cells, wanted, path)
    note = found.note
    if note is None:
        note = f"{path.name}: no header, the first column is the source"
    if delimiter != ",":
        note += f", {delimiter!r} between columns"
    return CsvColumns(
        found.source,
        found.target,
        found.header,
        note,
        found.count,
        delimiter,
        stated is not None,
    )


def read(
    path: Path, columns: CsvColumns, skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Reads the pairs of a file; line ends inside of quotes become spaces."""
    errors = "surrogateescape" if skip_bad_lines else "strict"
    records = _records(path, columns.delimiter, errors)
    left_out = columns.header + columns.stated
    for number, cells in itertools.islice(records, left_out, None):
        if not cells:
            continue  # An empty line is no record.
        yield pair_of_cells(
            [one_line(cell) for cell in cells],
            *(columns, path, number, repr(columns.delimiter), skip_bad_lines),
        )


def _stated_delimiter(path: Path) -> str | None:
    """That of a first line `sep=;`, by which spreadsheets tell it."""
    first = decode_line(next(raw_lines(path), b""), 1, path, "replace")
    found = re.fullmatch(r'"?sep=(.)"?', first, re.IGNORECASE)
    return found and found[1]


def _first_record(path: Path, delimiters: str) -> tuple[str, list[str]]:
    """The delimiter of a file, and its first record.

    It gives all of the first records the same number of cells, two or more;
    where several delimiters do, or none, the one with the most cells in the
    first record is taken.
    """
    found = []
    for delimiter in delimiters:
        records = _records(path, delimiter, "surrogateescape")
        # A delimiter with which the quotes do not close is no candidate.
        with contextlib.suppress(ValueError):
            first = [r for _, r in itertools.islice(records, _FIRST) if r]
            if len(delimiters) == 1:
                del first[:1]
            counts = set(map(len, first))
            alike = len(counts) == 1 and counts != {1}
            cells = first[0] if first else []
            found.append((alike, len(cells), delimiter, cells))
    if not found:
        list(_records(path, delimiters[0], "surrogateescape"))
    _, _, delimiter, cells = max(found, key=lambda record: record[:2])
    return delimiter, cells


def _records(
    path: Path, delimiter: str, errors: str
) -> Iterator[tuple[int, list[str]]]:
    """Each record, with the number of its first line."""
    lines = (
        # The end of a line may stand inside of quotes.
        decode_line(line, number, path, errors) + "\n"
        for number, line in enumerate(raw_lines(path), start=1)
    )
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
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
