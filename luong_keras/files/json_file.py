"""JSON that is written whole and named where it is damaged."""

import json
import os
from typing import Any

from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import no_link


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as indented JSON, atomically.

    Args:
        path: The file to write or to replace.
        value: Anything `json` can write; no NaN, which JSON has not.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def read_json(path: str | os.PathLike[str], what: str, advice: str) -> dict:
    """Read a JSON object.

    Args:
        path: The file.
        what: What it holds, for the message.
        advice: What to do where it is damaged.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, holds something else, or is a link.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.json"
        >>> write_json(path, {"seed": 1})
        >>> read_json(path, "a seed", "Write it again.")
        {'seed': 1}
        >>> _ = path.write_text("{")
        >>> read_json(path, "a seed", "Write it again.")
        Traceback (most recent call last):
          ...
        ValueError: Expected a seed in ...data.json'. Received: a file that \
is damaged (Expecting property name ...). Write it again.
    """
    path = no_link(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # Also what is no UTF-8.
        raise _damaged(path, what, str(error), advice) from error
    if not isinstance(value, dict):
        why = f"it holds a {type(value).__name__}"
        raise _damaged(path, what, why, advice)
    return value


def _damaged(path, what: str, why: str, advice: str) -> ValueError:
    return ValueError(
        f"Expected {what} in {str(path)!r}. Received: a file that is damaged "
        f"({why}). {advice}"
    )
