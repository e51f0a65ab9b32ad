"""Files that are either the old ones or the new ones, never half written."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PREFIX = ".partial-"


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` at the end.

    The temporary file lies in the same folder, keeps the suffixes of the name
    (some writers read the format from them) and is on disk before the rename,
    so a crash or a power cut leaves the old file or the new one. A block that
    raises leaves the old one. The temporary name is fixed: what a killed
    process left behind is overwritten by the next write, and one process at a
    time may write a file.

    Args:
        path: The file to write or to replace. Its folder is made if needed.

    Yields:
        The path that the block has to write to.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> with atomic_path(path) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> path.read_text(), temporary.exists()
        ('whole', False)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(_PREFIX + path.name)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The rename itself is on disk only when the folder is.
    _sync(path.parent)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as indented JSON, atomically.

    Args:
        path: The file to write or to replace.
        value: Anything `json` can write.
    """
    with atomic_path(path) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders.
    flags = os.O_RDWR if os.name == "nt" else os.O_RDONLY
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
