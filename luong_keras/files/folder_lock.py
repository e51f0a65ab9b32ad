"""Locks that let one process at a time write into a folder or a file."""

import contextlib
import datetime
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from luong_keras.files.atomic_file import (
    explain_disk_errors,
    is_running,
    remove_partial_files,
)
from luong_keras.files.path_checks import no_link

_LOCK = ".lock"
_OWNER = ".lock-owner.json"


class FolderInUseError(OSError):
    """Error for a folder or file that another process writes to."""


@contextlib.contextmanager
def lock_folder(
    folder: str | os.PathLike[str], name: str | None = None
) -> Iterator[None]:
    """Keep other processes from writing into a folder.

    The lock is one of the operating system (`flock`). It always ends with its
    process, so a killed process leaves no lock. Network file systems pass the
    lock to their server. On file systems without such locks, the existence of a
    file is the lock; the lock of a killed process of this machine is taken
    over.

    Args:
        folder: The folder; made if needed.
        name: The name of a file in the folder, to lock only that file. The lock
            of the file and the lock of the folder are independent.

    Raises:
        FolderInUseError: If a process has the lock, with the number and machine
            of the process and the time of locking.
        FileExistsError: If the folder is a file.
        ValueError: If the file that names the process is a link, or of another
            user.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with lock_folder(folder), lock_folder(folder):
        ...     pass
        Traceback (most recent call last):
          ...
        luong_keras.files.folder_lock.FolderInUseError: ... is in use by \
process ... on ... since ...
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(
            f"Expected: the path of a folder. Received: {folder}, which is a "
            "file. Choose another path."
        )
    what, begin = folder, ""
    if name is not None:
        what, begin = folder / name, f".{name}"
    path, owner_path = folder / (begin + _LOCK), folder / (begin + _OWNER)
    no_link(owner_path, in_place=True)
    lock = filelock.FileLock(path, is_singleton=False)
    try:
        with explain_disk_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
    except filelock.Timeout as error:
        raise _in_use_error(what, path, owner_path) from error
    try:
        owner = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.datetime.now().isoformat(" ", "seconds"),
        }
        with explain_disk_errors(owner_path):
            owner_path.write_text(json.dumps(owner), encoding="utf-8")
        remove_partial_files(folder, name)
        yield
    finally:
        with contextlib.suppress(OSError):
            owner_path.unlink(missing_ok=True)
        lock.release()


def _in_use_error(what: Path, lock: Path, owner_path: Path) -> FolderInUseError:
    who = "another process"
    # The file may not be written yet, or be of a killed process.
    with contextlib.suppress(OSError, ValueError, KeyError):
        owner = json.loads(owner_path.read_text(encoding="utf-8"))
        elsewhere = owner["host"] != socket.gethostname()
        if elsewhere or is_running(owner["process"]):
            who = "process {process} on {host} since {since}".format(**owner)
    return FolderInUseError(
        f"{what} is in use by {who}. Wait until the process ends, end it, or "
        "use another path. If no such process runs, as can happen on a "
        f"network file system without locks, remove {lock}."
    )
