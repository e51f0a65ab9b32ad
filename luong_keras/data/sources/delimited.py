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
    choose_columns,
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
_DELIMITERS = ",;\t"
_RECORDS_READ = 20  # records from which the delimiter is detected

# Yields the number of the first line and the cells of each record that is not
# empty; it takes the file and the treatment of decoding errors.
RecordReader = Callable[[Path, str], Iterator[tuple[int, list[str]]]]


def _choose_columns(
    cells: list[str], requested: RequestedColumns, name: str
) -> tuple[Columns, bool]:
    """Choose columns of a file whose first line may be a header.

    The line is a header if columns are requested by name, or if it has names
    from which the source and the target column can be guessed.

    Args:
        cells: The cells of the first line.
        requested: The requested languages and columns.
        name: The name of the file.

    Returns:
        The columns named by the header; the columns with the requested
        numbers; or the first two, if the line has no more. Also whether the
        line is a header.

    Raises:
        ValueError: If more than two columns exist and none can be chosen.
    """
    columns = requested.columns
    numbers = [str(i + 1) for i in range(max(len(cells), 2))]
    by_number = {*columns} <= {*numbers} if columns else len(numbers) == 2
    guess = guess_columns(cells, requested.languages)
    has_header = guess is not None or not by_number
    chosen = choose_columns(cells if has_header else numbers, requested, name)
    if has_header or len(cells) < 2:
        return chosen, has_header
    source, target = cells[chosen.source], cells[chosen.target]
    note = (
        f"{chosen.note}; no header, so its first line is a pair, "
        f"{source[:40]!r} → {target[:40]!r}"
    )
    are_names = all(len(c) > 1 and c.isidentifier() for c in cells)
    if columns is None and are_names and source != target:
        note += f". If it is a header: --columns {source} {target}"
    return dataclasses.replace(chosen, note=note), False


def open_tsv(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a tab-separated file; its first lines determine the columns."""
    lines = itertools.islice(read_lines(path, "surrogateescape"), _RECORDS_READ)
    read_records: RecordReader = _tsv_records
    if _ALL_IN_QUOTES.fullmatch("\n".join([*lines, ""])):
        read_cells = functools.partial(_csv_records, delimiter="\t")
        with contextlib.suppress(ValueError):
            # Quotes of the text, as in dialogues, may end this sooner or later.
            collections.deque(read_cells(path, "surrogateescape"), maxlen=0)
            read_records = read_cells
    return _open_records(path, requested, read_records, "a tab")


def open_csv(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a `.csv` file; its first records determine the delimiter."""
    # The first line may state it, as in `sep=;`.
    first = next(read_lines(path, "replace"), "")
    stated = re.fullmatch(r'"?sep=(.)"?', first, re.IGNORECASE)
    delimiter = stated[1] if stated else _find_delimiter(path)
    return _open_records(
        path,
        requested,
        functools.partial(_csv_records, delimiter=delimiter),
        repr(delimiter),
        skipped=int(stated is not None),
        note="" if delimiter == "," else f", {delimiter!r} between columns",
    )


def _open_records(
    path: Path,
    requested: RequestedColumns,
    read_records: RecordReader,
    delimiter: str,
    skipped: int = 0,
    note: str = "",
) -> TextSource:
    records = read_records(path, "surrogateescape")
    _, cells = next(itertools.islice(records, skipped, None), (0, []))
    columns, has_header = _choose_columns(cells, requested, path.name)
    read = functools.partial(
        _read_pairs,
        path,
        columns,
        max(len(cells), 2),
        read_records,
        delimiter,
        skipped + has_header,
    )
    return TextSource(read, f"{columns.note}{note}", columns.languages)


def _find_delimiter(path: Path) -> str:
    """Return the delimiter of a file.

    It divides all of the first records into the same number of cells, two or
    more. If several delimiters do, or none, one that always has a space after
    it or digits on both sides, as in a sentence or a number, is chosen last.
    Then the delimiter with the most cells in the first record is chosen.
    """
    ranks = {}
    for delimiter in _DELIMITERS:
        records = _csv_records(path, "surrogateescape", delimiter)
        # With a wrong delimiter, quotes may not close: it is no candidate.
        with contextlib.suppress(ValueError):
            rows = [
                cells for _, cells in itertools.islice(records, _RECORDS_READ)
            ]
            counts = list(map(len, rows)) or [0]
            are_alike = len({*counts}) == 1 and counts[0] > 1
            is_in_text = all(
                after.startswith(" ")
                or (before[-1:].isdecimal() and after[:1].isdecimal())
                for row in rows
                for before, after in itertools.pairwise(row)
            )
            ranks[delimiter] = are_alike, not is_in_text, counts[0]
    return max(ranks, key=ranks.__getitem__, default=_DELIMITERS[0])


def _tsv_records(path: Path, errors: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty."""
    for number, line in enumerate(read_lines(path, errors), start=1):
        if line:
            yield number, [_unquote(cell) for cell in line.split("\t")]


def _read_pairs(
    path: Path,
    columns: Columns,
    count: int,
    read_records: RecordReader,
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
    records = read_records(path, errors)
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


def _csv_records(
    path: Path, errors: str, delimiter: str
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
