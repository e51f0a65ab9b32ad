"""Files of one JSON record per line."""

import functools
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from luong_keras.data.sources.columns import (
    Columns,
    RequestedColumns,
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
