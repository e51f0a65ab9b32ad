"""Atomic writing of files; JSON and lines of JSON."""

import contextlib
import errno
import glob
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from luong_keras.files.path_checks import no_link, output_file

_PREFIX = ".partial-"
# Errors of a disk that is full, has failed, or cannot be written.
DISK_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "the file is larger than is allowed there",
    errno.EIO: "the disk has failed (an input/output error)",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "there is no permission to write there",
    errno.EPERM: "there is no permission to write there",
    **dict.fromkeys(
        (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP),
        "the file system cannot lock or replace files",
    ),
}
DISK_ADVICE = (
    "Free some space, make the folder writable, or use a folder on a local "
    "disk, and run the same command again"
)


@contextlib.contextmanager
def atomic_path(
    path: str | os.PathLike[str],
    around: contextlib.AbstractContextManager[None] | None = None,
    size: int = 0,
) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` at the end.

    The temporary file is in the same folder, keeps the suffixes of the name
    (some writers read the format from them) and is on disk before the rename,
    so a crash or a power cut leaves the old file or the new one. A block that
    raises leaves the old file. The temporary name contains the machine and the
    process number, so two processes never write into one file. The next write
    removes files of this name left by killed processes of this machine.

    Args:
        path: The file to write or to replace. Its folder is made if needed.
        around: A context that is entered when the new file is on disk, and left
            when the new file has replaced the old one.
        size: The size of the new file in bytes, if known. The disk must have
            room for it.

    Yields:
        The temporary path to write to.

    Raises:
        OSError: If the file cannot be written. The message names the file and
            the problem with the disk, and says that the old file is intact.
        ValueError: If the path is a link, a folder, a device or a pipe.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> with atomic_path(path) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> path.read_text(), temporary.exists()
        ('whole', False)
    """
    path = output_file(path)
    with explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partial_files(path.parent, path.name)
        if size:
            free = shutil.disk_usage(path.parent).free
            if free < size:
                raise OSError(
                    errno.ENOSPC, f"{free:,} of {size:,} bytes are free"
                )
        temporary = path.with_name(partial_name(path.name))
        try:
            # A link of this name would lead the writer to another file.
            temporary.unlink(missing_ok=True)
            temporary.touch(exist_ok=False)
            yield temporary
            sync(temporary)
            with around or contextlib.nullcontext():
                os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        # The rename is on disk only once the folder is.
        sync(path.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, atomically.

    Args:
        path: The file to write or to replace.
        text: The whole content.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def partial_name(name: str) -> str:
    """Return the name of a temporary file of this process."""
    return f"{_PREFIX}{socket.gethostname()}@{os.getpid()}-{name}"


def remove_partial_files(folder: Path, name: str | None = None) -> None:
    """Remove temporary files of killed processes of this machine.

    Args:
        folder: The folder of the files.
        name: The name of the intended file; any name when None.
    """
    # The name of another machine may begin with that of this one, a "-" and
    # digits, but not with an "@" after it.
    prefix = f"{_PREFIX}{socket.gethostname()}@"
    ending = "*" if name is None else glob.escape(name)
    for partial in folder.glob(f"{glob.escape(prefix)}*-{ending}"):
        number = partial.name.removeprefix(prefix).partition("-")[0]
        if not number.isdecimal() or is_running(int(number)):
            continue
        if partial.is_dir():  # of an earlier version
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Test whether this machine has a process of this number.

    Example:
        >>> is_running(os.getpid())
        True
    """
    if os.name == "nt":
        return True  # On Windows the call below would end the process.
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def explain_disk_errors(path: Path, atomic: bool = True) -> Iterator[None]:
    """Explain disk errors within the context, with the name of the file.

    An error of a file in another folder is raised unchanged.

    Args:
        path: The file.
        atomic: Whether the old file stays until the new one is complete. A file
            that is written in place must belong to the user.

    Raises:
        OSError: With the file, the reason, and advice.
        ValueError: For a link, or a file of another user that is written in
            place.
    """
    no_link(path, in_place=not atomic)
    try:
        yield
    except OSError as error:
        reason = DISK_REASONS.get(error.errno or 0)
        # Within the context the caller may also read files elsewhere.
        named = error.filename if isinstance(error.filename, str) else path
        file, folder = Path(named).absolute(), path.absolute().parent
        is_here = file.is_relative_to(folder) or folder.is_relative_to(file)
        if reason is None or not is_here:
            raise
        old = "is as it was" if path.exists() else "was not written"
        if not atomic:
            old = "could not be written"
        raise type(error)(
            error.errno,
            f"{path} {old}: {reason}. {DISK_ADVICE}",
            str(error.filename or path),
        ) from error


def sync_tree(folder: Path) -> None:
    """Wait until a folder and its whole content are on disk."""
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders.
    flags = os.O_RDWR if os.name == "nt" else os.O_RDONLY
    try:
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems cannot sync a folder; others may not list it.
        ignored = errno.EINVAL, errno.EACCES, errno.EBADF, errno.ENOTSUP
        if error.errno not in ignored or path.is_file():
            raise


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as indented JSON, atomically.

    Args:
        path: The file to write or to replace.
        value: Any JSON-compatible value, without NaN.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def read_json(path: str | os.PathLike[str], what: str, advice: str) -> dict:
    """Read a JSON object.

    Args:
        path: The file.
        what: The content of the file, for the message.
        advice: Advice for a damaged file, for the message.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is damaged, not an object, or a link.

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
        if not isinstance(value, dict):
            raise ValueError(f"it holds a {type(value).__name__}")
    except ValueError as error:  # Includes text that is not UTF-8.
        raise ValueError(
            f"Expected {what} in {str(path)!r}. Received: a file that is "
            f"damaged ({error}). {advice}"
        ) from error
    return value


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


def json_lines(values: Iterable[Any]) -> str:
    """Return a text of one JSON value per line."""
    return "".join(
        f"{json.dumps(value, ensure_ascii=False)}\n" for value in values
    )
