"""Files of columns with tabs between them, and no quoting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from luong_keras.data.parallel_text import (
    check_is_file,
    decode_line,
    raw_lines,
    read_columns,
)
from luong_keras.data.sources.columns import (
    Columns,
    Wanted,
    chosen_note,
    guessed_columns,
    named_columns,
)
from luong_keras.data.sources.placed_pair import PlacedPair
from luong_keras.data.sources.source_kinds import FileKind


def first_two_or_named(cells: list[str], wanted: Wanted, path: Path) -> Columns:
    """Chooses columns of a file whose first line may be a header.

    It is one where it has the names that are wanted, or names that tell the
    source and the target column.

    Args:
        cells: The first line.
        wanted: What is looked for.
        path: The file.

    Returns:
        The columns: of a header; of the numbers that are wanted; or the
        first two.
    """
    name = path.name
    guess = guessed_columns(cells, wanted.languages)
    if wanted.columns is not None:
        found = named_columns(cells, wanted.columns, name)
        header = bool({*wanted.columns} & {*cells}) or guess is not None
        names = cells if header else [str(i + 1) for i in range(len(cells))]
        note = chosen_note(names, found, name, "as data.columns says")
        return Columns(*found, header, note)
    if guess is not None:
        note = chosen_note(cells, guess, name, "guessed by the first line")
        return Columns(*guess, True, note)
    return Columns(0, 1)


def choose(path: Path, wanted: Wanted) -> Columns:
    """Finds the columns of a file by its first line."""
    check_is_file(path)
    first = next(raw_lines(path), b"")
    line = decode_line(first, 1, path, "surrogateescape")
    return first_two_or_named(line.split("\t"), wanted, path)


def read(
    path: Path, columns: Columns, skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Reads the pairs of a file."""
    places = columns.source, columns.target
    for number, source, target in read_columns(
        path, skip_bad_lines, places, columns.header
    ):
        yield PlacedPair(source, target, f"{path.name}:{number}")


KIND = FileKind(".tsv", choose, read)
