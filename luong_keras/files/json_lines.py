"""Files with one JSON value per line."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import no_link


def read_json_lines(
    path: Path,
    what: str = "JSON",
    valid: Callable[[Any], bool] = lambda value: True,
    advice: str = "Remove the line.",
    appended: bool = False,
) -> list[Any]:
    r"""Read the values of all lines.

    Args:
        path: The file.
        what: The content of a line, for the error.
        valid: Function that tests whether a value is valid.
        advice: The last sentence of the error.
        appended: Whether lines are appended to the file. The file may then be
            missing, and its last line incomplete; the line is left out if so.

    Raises:
        FileNotFoundError: If the file does not exist and is not `appended`.
        ValueError: If another line is damaged, with its number, or the file is
            a link.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> path.write_text('{"epoch": 1}\n{"epo')
        18
        >>> read_json_lines(path, appended=True)
        [{'epoch': 1}]
    """
    path = no_link(path)
    if appended and not path.exists():
        return []
    # Only a line feed ends a line, because a sentence may contain U+2028.
    *lines, last = path.read_bytes().split(b"\n")
    values = []
    for number, line in enumerate([*lines, last] if last else lines, start=1):
        try:
            value = json.loads(line.decode())
        except ValueError:
            value = None
        if value is not None and valid(value):
            values.append(value)
        elif not appended or number <= len(lines):
            excerpt = line[:80].decode(errors="replace")
            raise ValueError(
                f"Expected: {what} in {path}, line {number}. Received: "
                f"{excerpt!r}. {advice}"
            )
    return values


def write_json_lines(path: Path, values: Iterable[Any]) -> None:
    """Write one JSON value per line, atomically.

    Args:
        path: The file to write or to replace.
        values: JSON-compatible values, one for each line.
    """
    write_text(path, json_lines(values))


def json_lines(values: Iterable[Any]) -> str:
    """Return a text of one JSON value per line."""
    return "".join(
        f"{json.dumps(value, ensure_ascii=False)}\n" for value in values
    )
