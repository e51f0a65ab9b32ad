"""Locks that let one process at a time write into a folder or a file."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import filelock

from luong_keras.files.atomic_file import (
    explain_disk_errors,
    remove_partial_files,
)


class FolderInUseError(OSError):
    """Error for a folder or file that another process writes to."""


@contextlib.contextmanager
def lock_folder(
    folder: str | os.PathLike[str], name: str | None = None
) -> Iterator[None]:
    """Keep other processes from writing into a folder.

    The lock is one of the operating system (`flock`). It always ends with its
    process, so a killed process leaves no lock. Network file systems pass the
    lock to their server. On file systems without such locks, and with filelock
    3.24 or later, the existence of a file is the lock; the lock of a killed
    process of this machine is taken over.

    Args:
        folder: The folder; made if needed.
        name: The name of a file in the folder, to lock only that file. The lock
            of the file and the lock of the folder are independent.

    Raises:
        FolderInUseError: If a process has the lock.
        FileExistsError: If the folder is a file.
        OSError: If the file system has no locks, or the folder cannot be
            written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with lock_folder(folder), lock_folder(folder):
        ...     pass
        Traceback (most recent call last):
          ...
        luong_keras.files.folder_lock.FolderInUseError: ... is in use by \
another process. ...
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(
            f"Expected: the path of a folder. Received: {folder}, which is a "
            "file. Choose another path."
        )
    what, path = folder, folder / ".lock"
    if name is not None:
        what, path = folder / name, folder / f".{name}.lock"
    lock = filelock.FileLock(path, is_singleton=False)
    try:
        with explain_disk_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(blocking=False)
            except NotImplementedError as error:  # filelock before 3.24
                raise OSError(errno.ENOSYS, str(error)) from error
    except filelock.Timeout as error:
        raise FolderInUseError(
            f"{what} is in use by another process. Wait until it ends, end it, "
            "or use another path. If no such process runs, as can happen on a "
            f"network file system without locks, remove {path}."
        ) from error
    try:
        remove_partial_files(folder, name)
        yield
    finally:
        lock.release()
