"""Files of columns with tabs between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from luong_keras.data.parallel_text import (
    check_is_file,
    decode_line,
    raw_lines,
)
from luong_keras.data.sources.columns import (
    Columns,
    Wanted,
    chosen_note,
    guessed_columns,
    named_columns,
)
from luong_keras.data.sources.placed_pair import (
    MORE_COLUMNS,
    PlacedPair,
    one_line,
)
from luong_keras.data.sources.source_kinds import FileKind

# Quotes around all of it and none alone inside, as pandas and spreadsheets
# write a cell with quotes; other text with quotes stays as it is.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


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
        first two, where there are no more.

    Raises:
        ValueError: There are more than two, and nothing says which.
    """
    name, count = path.name, len(cells)
    guess = guessed_columns(cells, wanted.languages)
    if wanted.columns is not None:
        found = named_columns(cells, wanted.columns, name)
        header = bool({*wanted.columns} & {*cells}) or guess is not None
        names = cells if header else [str(i + 1) for i in range(count)]
        note = chosen_note(names, found, name, "as data.columns says")
        return Columns(*found, header, note, count)
    if guess is not None:
        note = chosen_note(cells, guess, name, "guessed by the first line")
        return Columns(*guess, True, note, count)
    if count > 2:
        raise ValueError(
            f"The columns of {path} cannot be guessed. Expected: two columns, "
            "or a first line with columns called source and target, or by the "
            f"languages {' and '.join(wanted.languages)}. Received: {count}, "
            f"{cells[:12]!r:.200}. Name two of them, the source first: --set "
            'data.columns=["NAME","NAME"], or by their numbers from 1.'
        )
    return Columns(0, 1, count=2)


def choose(path: Path, wanted: Wanted) -> Columns:
    """Finds the columns of a file by its first line."""
    check_is_file(path)
    first = next(raw_lines(path), b"")
    line = decode_line(first, 1, path, "surrogateescape")
    return first_two_or_named(line.split("\t"), wanted, path)


def read(
    path: Path, columns: Columns, skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Reads the pairs of a file.

    Lines with fewer columns than need be, or with more than the first one,
    are marked, or errors.
    """
    errors = "surrogateescape" if skip_bad_lines else "strict"
    number = 0
    for number, raw in enumerate(raw_lines(path), start=1):
        line = decode_line(raw, number, path, errors)
        if columns.header and number == 1:
            continue
        yield pair_of_cells(
            [one_line(_unquoted(cell)) for cell in line.split("\t")],
            *(columns, path, number, "a tab", skip_bad_lines),
        )
    if not number:
        raise ValueError(f"The parallel text has no sentence: {path} is empty.")


def pair_of_cells(
    cells: list[str],
    columns: Columns,
    path: Path,
    number: int,
    delimiter: str,
    skip_bad_lines: bool,
) -> PlacedPair:
    """The pair of a line, or the line as one that is none.

    Args:
        cells: The columns of the line.
        columns: Which two are wanted.
        path: The file.
        number: The line.
        delimiter: What stands between columns, for the message.
        skip_bad_lines: Whether a wrong number of columns is no error.

    Raises:
        ValueError: The line has too few columns, or too many.
    """
    place, least = f"{path.name}:{number}", max(columns.source, columns.target)
    many = columns.count is not None and len(cells) > columns.count
    if len(cells) > least and not many:
        return PlacedPair(cells[columns.source], cells[columns.target], place)
    if skip_bad_lines:
        problem = MORE_COLUMNS if many else None
        return PlacedPair(cells[0], None, place, problem)
    expected = columns.count if many else least + 1
    raise ValueError(
        f"Line {number} of {path} has not {expected} columns. Expected: "
        f"source and target, {delimiter} between them. Received: "
        f"{cells!r:.80}. Correct the line, or remove it."
    )


def _unquoted(cell: str) -> str:
    if cell[:1] == '"' and _QUOTED.fullmatch(cell):
        return cell[1:-1].replace('""', '"')
    return cell


KIND = FileKind(".tsv", choose, read)
