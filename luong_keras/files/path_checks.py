"""Checks of paths: in a folder, no link, on this machine."""

import os
import re
from pathlib import Path


def safe_join(folder: str | Path, name: str | Path) -> Path:
    """The file of this name, which must lie in the folder.

    A folder that came from somewhere else could name any file of this
    machine, and so show what is in it.

    Args:
        folder: where it must lie.
        name: relative to the folder.

    Returns:
        The path, whether there is such a file or not.

    Raises:
        ValueError: where it leads out of the folder: an absolute path, one
            over `..`, or a link.

    Example:
        >>> safe_join("runs/mine", "dictionary.txt").as_posix()
        'runs/mine/dictionary.txt'
        >>> safe_join("runs/mine", "../theirs/dictionary.txt")
        Traceback (most recent call last):
        ValueError: Expected: a file in runs/mine. Received:
        '../theirs/dictionary.txt', which leads out of it.
    """
    path = Path(folder) / name
    within = path.resolve().is_relative_to(Path(folder).resolve())
    if Path(name).is_absolute() or not within:
        raise ValueError(
            f"Expected: a file in {folder}. Received: {str(name)!r}, which "
            "leads out of it."
        )
    return path


def no_link(path: str | os.PathLike[str], in_place: bool = False) -> Path:
    """The path of a file of a run, which must not be a link.

    A folder that came from somewhere else could show, or change, any file of
    this machine. A link among the folders above is one's own matter.

    Args:
        path: of the file, whether there is one or not.
        in_place: whether the file that is there will be changed; it must then
            be of the user whose process this is. Root, as in a container with
            a folder of its host, may also change that of the folder's owner.

    Raises:
        ValueError: where it is a link, or of another user.
    """
    path = Path(path)
    if path.is_symlink():
        raise ValueError(
            f"Expected: a file at {path}. Received: a link to "
            f"{os.readlink(path)}, which is neither read nor written. Put a "
            "copy in its place, or remove it."
        )
    if in_place and hasattr(os, "geteuid") and path.exists():
        owner, own = path.stat().st_uid, {os.geteuid()}
        if own == {0}:
            own.add(path.absolute().parent.stat().st_uid)
        if owner not in own:
            raise ValueError(
                f"Expected: {path}, which is added to, as a file of user "
                f"{os.geteuid()}. Received: one of user {owner}. Put a copy "
                "in its place."
            )
    return path


def no_pattern(path: str | os.PathLike[str]) -> Path:
    """The path of a folder that an export is written to.

    Raises:
        ValueError: where TensorFlow would take it for a pattern of paths, and
            find none of its files.

    Example:
        >>> no_pattern("runs/[1]")
        Traceback (most recent call last):
        ValueError: Expected: a folder without * ? [ ] in its path, which \
TensorFlow takes for a pattern. Received: runs/[1]. Choose another name.
    """
    if set(os.fspath(path)) & set("*?[]"):
        raise ValueError(
            "Expected: a folder without * ? [ ] in its path, which TensorFlow "
            f"takes for a pattern. Received: {path}. Choose another name."
        )
    return Path(path)


def local(path: str | os.PathLike[str]) -> Path:
    """The path, which must be one of this machine.

    Raises:
        ValueError: where it is an address such as `gs://bucket/model`.

    Example:
        >>> local("gs://bucket/model/1")
        Traceback (most recent call last):
        ValueError: Expected: a folder or file of this machine. Received: \
gs://bucket/model/1, which begins with gs:. Give a path here, and copy what \
is written.
    """
    text = os.fspath(path).replace(os.sep, "/")
    # `Path` takes one of the two slashes away; one letter is a drive.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/+", text)
    if scheme:
        received = f"{scheme[1]}://{text[scheme.end() :]}"
        raise ValueError(
            "Expected: a folder or file of this machine. Received: "
            f"{received}, which begins with {scheme[1]}:. Give a path here, "
            "and copy what is written."
        )
    return Path(path)
