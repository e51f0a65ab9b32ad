"""Files of columns: `.tsv` with tabs, `.csv` with commas and quotes."""

import collections
import contextlib
import csv
import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from luong_keras.data.sources.columns import (
    Columns,
    RequestedColumns,
    describe_columns,
    find_columns,
    guess_columns,
)
from luong_keras.data.sources.source_kinds import (
    MORE_COLUMNS,
    PlacedPair,
    TextSource,
    one_line,
)
from luong_keras.files.text_lines import read_lines

# A cell in quotes with only doubled quotes inside, as pandas and spreadsheets
# write a cell that contains quotes. Other text with quotes stays unchanged.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')
# Lines whose cells are all in quotes; the last line may end inside a cell,
# which then has no tab, because a quote of the text would swallow columns.
_CELL = r'"(?:[^"]|"")*"'
_ALL_IN_QUOTES = re.compile(
    rf'(?:{_CELL}(?:\t{_CELL})+\n+)+(?:(?:{_CELL}\t)*"(?:[^"\t]|"")*)?'
)


def _choose_columns(
    cells: list[str], requested: RequestedColumns, path: Path
) -> tuple[Columns, bool]:
    """Choose columns of a file whose first line may be a header.

    The line is a header if columns are requested by name, or if it has names
    from which the source and the target column can be guessed.

    Args:
        cells: The cells of the first line.
        requested: The requested languages and columns.
        path: The file.

    Returns:
        The columns named by the header; the columns with the requested
        numbers; or the first two, if the line has no more. Also whether the
        line is a header.

    Raises:
        ValueError: If more than two columns exist and none can be chosen.
    """
    name, count = path.name, len(cells)
    columns, numbers = requested.columns, [str(i + 1) for i in range(count)]
    by_number = columns is not None and {*columns} <= {*numbers}
    guess = guess_columns(cells, requested.languages)
    if columns is not None:
        header = not by_number or guess is not None
        too_large = all(map(str.isdecimal, columns)) and not by_number
        is_named = header and (not too_large or {*columns} <= {*cells})
        names = cells if is_named else numbers
        indices = find_columns(names, columns, name)
        chosen = describe_columns(names, indices, name, "as data.columns says")
        if not header:
            pair = _describe_first_pair(cells, indices)
            chosen = dataclasses.replace(chosen, note=f"{chosen.note}; {pair}")
        return chosen, header
    if guess is not None:
        return (
            describe_columns(cells, guess, name, "guessed by the first line"),
            True,
        )
    if count > 2:
        raise ValueError(
            f"The columns of {path} cannot be guessed. Expected: two columns, "
            "or a first line with columns named source and target, or after "
            f"the languages {requested.description}. Received: "
            f"{count}, {cells[:12]!r:.200}. Name two of them, the source "
            "first: --columns NAME NAME (data.columns), or by their numbers "
            "from 1."
        )
    pair_note = None
    if count == 2:
        pair_note = f"{name}: {_describe_first_pair(cells, (0, 1))}"
        is_name = all(len(c) > 1 and c.isidentifier() for c in cells)
        if is_name and cells[0] != cells[1]:
            pair_note += f". If it is a header: --columns {' '.join(cells)}"
    return Columns(0, 1, pair_note), False


def _describe_first_pair(cells: list[str], indices: tuple[int, int]) -> str:
    source, target = (cells[index][:40] for index in indices)
    return f"no header, so its first line is a pair, {source!r} → {target!r}"


def open_tsv(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a tab-separated file; its first lines determine the columns."""
    lines = list(
        itertools.islice(read_lines(path, "surrogateescape"), _RECORDS_READ)
    )
    if _ALL_IN_QUOTES.fullmatch("\n".join([*lines, ""])):
        with contextlib.suppress(ValueError):
            # Quotes of the text, as in dialogues, may end this sooner or later.
            collections.deque(
                _csv_records(path, "\t", "surrogateescape"), maxlen=0
            )
            return _open_records(path, requested, "\t")
    cells = next(filter(None, lines), "").split("\t")
    columns, has_header = _choose_columns(cells, requested, path)
    return TextSource(
        functools.partial(
            _read_pairs,
            path,
            columns,
            max(len(cells), 2),
            _tsv_records,
            "a tab",
            has_header,
        ),
        columns.note,
        columns.languages,
    )


def _tsv_records(path: Path, errors: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty."""
    for number, line in enumerate(read_lines(path, errors), start=1):
        if line:
            yield number, [_unquote(cell) for cell in line.split("\t")]


def _read_pairs(
    path: Path,
    columns: Columns,
    count: int,
    read_records: Callable[..., Iterator[tuple[int, list[str]]]],
    delimiter: str,
    skipped: int,
    skip_bad_lines: bool,
) -> Iterator[PlacedPair]:
    """Read the pairs of a file; line ends inside quotes become spaces.

    Args:
        path: The file.
        columns: The source and the target column.
        count: The number of columns of the first line, two or more.
        read_records: A function that yields the number and the cells of each
            record, and takes the file and the treatment of decoding errors.
        delimiter: The delimiter between columns, for the message.
        skipped: The number of records before the first pair.
        skip_bad_lines: Whether a wrong number of columns is only marked.

    Raises:
        ValueError: If a line has too few columns, or too many.
    """
    errors = "surrogateescape" if skip_bad_lines else "strict"
    last_column = max(columns.source, columns.target)
    number = 0
    records = read_records(path, errors=errors)
    for number, raw_cells in itertools.islice(records, skipped, None):
        cells = [one_line(cell) for cell in raw_cells]
        place = f"{path.name}:{number}"
        has_more = len(cells) > count
        if len(cells) > last_column and not has_more:
            yield PlacedPair(
                cells[columns.source], cells[columns.target], place
            )
        elif skip_bad_lines:
            problem = MORE_COLUMNS if has_more else None
            yield PlacedPair(cells[0], None, place, problem)
        else:
            expected = count if has_more else last_column + 1
            raise ValueError(
                f"Line {number} of {path} does not have {expected} columns. "
                f"Expected: source and target, {delimiter} between them. "
                f"Received: {cells!r:.80}. Correct the line, or remove it."
            )
    if not number:
        raise ValueError(
            f"The parallel text has no sentence: {path} is empty"
            f"{' after its first line' * skipped}."
        )


def _unquote(cell: str) -> str:
    if cell[:1] == '"' and _QUOTED.fullmatch(cell):
        return cell[1:-1].replace('""', '"')
    return cell


_DELIMITERS = ",;\t"
_RECORDS_READ = 20  # records from which the delimiter is detected


def open_csv(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a `.csv` file; its first records determine the delimiter."""
    stated = _stated_delimiter(path)
    return _open_records(path, requested, stated or _DELIMITERS, bool(stated))


def _open_records(
    path: Path,
    requested: RequestedColumns,
    delimiters: str,
    stated: bool = False,
) -> TextSource:
    delimiter, cells = _first_record(path, delimiters, stated)
    columns, has_header = _choose_columns(cells, requested, path)
    note = columns.note
    if note is not None and delimiter != "," and delimiters != "\t":
        note += f", {delimiter!r} between columns"
    read_records = functools.partial(_csv_records, delimiter=delimiter)
    return TextSource(
        functools.partial(
            _read_pairs,
            path,
            columns,
            max(len(cells), 2),
            read_records,
            repr(delimiter),
            has_header + stated,
        ),
        note,
        columns.languages,
    )


def _stated_delimiter(path: Path) -> str | None:
    """Return the delimiter in a first line such as `sep=;`, or None."""
    first = next(read_lines(path, "replace"), "")
    match = re.fullmatch(r'"?sep=(.)"?', first, re.IGNORECASE)
    return match and match[1]


def _first_record(
    path: Path, delimiters: str, stated: bool
) -> tuple[str, list[str]]:
    """Return the delimiter of a file, and its first record.

    The delimiter divides all of the first records into the same number of
    cells, two or more. If several delimiters do, or none, one that always has
    a space after it or digits on both sides, as in a sentence or a number, is
    chosen last. Then the delimiter with the most cells in the first record is
    chosen.
    """
    candidates = []
    for delimiter in delimiters:
        records = _csv_records(path, delimiter, "surrogateescape")
        # With a wrong delimiter, quotes may not close: it is no candidate.
        with contextlib.suppress(ValueError):
            rows = [
                cells for _, cells in itertools.islice(records, _RECORDS_READ)
            ]
            if stated:
                del rows[:1]  # the line `sep=`
            counts = set(map(len, rows))
            are_alike = len(counts) == 1 and counts != {1}
            is_in_text = all(
                after.startswith(" ")
                or (before[-1:].isdecimal() and after[:1].isdecimal())
                for row in rows
                for before, after in itertools.pairwise(row)
            )
            cells = rows[0] if rows else []
            rank = are_alike, not is_in_text, len(cells)
            candidates.append((rank, delimiter, cells))
    if not candidates:
        list(_csv_records(path, delimiters[0], "surrogateescape"))
    return max(candidates, key=lambda candidate: candidate[0])[1:]


def _csv_records(
    path: Path, delimiter: str, errors: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not empty, and its first line's number."""
    record_lines: list[str] = []  # the lines of the current record
    limit = csv.field_size_limit()
    find_delimiters = re.compile(f"{re.escape(delimiter)}( ?)").findall

    def lines() -> Iterator[str]:
        for line in read_lines(path, errors):
            # A record may have line ends inside quotes.
            # Outside of quotes, a carriage return would be an error.
            record_lines.append(line.replace("\r", " ") + "\n")
            # The limit finds quotes that are not closed; a long line may pass.
            csv.field_size_limit(max(limit, len(record_lines[-1])))
            yield record_lines[-1]

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in reader:
            # Delimiters of a sentence have a space after them, unlike columns.
            shapes = (
                {tuple(find_delimiters(line)) for line in record_lines}
                if len(record_lines) > 2
                else ()
            )
            if [*map(len, shapes)] == [len(cells) - 1]:
                raise csv.Error(f"its {len(record_lines)} lines are records")
            if cells:  # not an empty line
                yield number, cells
            number = reader.line_num + 1
            record_lines.clear()
    except csv.Error as error:
        raise ValueError(
            f"The record that begins in line {number} of {path} cannot be "
            f"read ({error}). Expected: quotes that are closed, and doubled "
            "inside quoted text. Correct it, or save the file as `.tsv`."
        ) from error
    finally:
        csv.field_size_limit(limit)
