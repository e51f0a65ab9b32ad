"""Checks of paths: inside a folder, not a link, on this machine."""

import os
import re
from pathlib import Path


def safe_join(folder: str | Path, name: str | Path) -> Path:
    """Return the path of a file that must be inside the folder.

    A run folder from elsewhere could otherwise name any file of this machine,
    and reveal the content.

    Args:
        folder: The folder.
        name: Path of the file relative to the folder.

    Returns:
        The path; the file need not exist.

    Raises:
        ValueError: If the path is absolute, or leads out of the folder through
            `..` or a link.

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
    """Return the path of a file of a run, which must not be a link.

    A link in a run folder from elsewhere could reveal, or change, any file of
    this machine. Links among the parent folders are allowed.

    Args:
        path: Path of the file, which need not exist.
        in_place: Whether an existing file will be changed. It must then belong
            to the user of this process or to the owner of its folder: in a
            container or on a network mount these can be other users.

    Raises:
        ValueError: If the file is a link, or of another user.
    """
    path = Path(path)
    if path.is_symlink():
        raise ValueError(
            f"Expected: a file at {path}. Received: a link to "
            f"{os.readlink(path)}, which is neither read nor written. Put a "
            "copy in its place, or remove it."
        )
    if in_place and hasattr(os, "geteuid") and path.exists():
        owner, folder = path.stat().st_uid, path.absolute().parent
        if owner not in (os.geteuid(), folder.stat().st_uid):
            raise ValueError(
                f"Expected: {path}, which is changed in place, as a file of "
                f"user {os.geteuid()}. Received: a file of user {owner}. Put "
                "a copy in its place."
            )
    return path


def output_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, which must not be something else.

    Raises:
        ValueError: If the path is a link, a folder, a device, a pipe or `-`.

    Example:
        >>> output_file("-")
        Traceback (most recent call last):
        ValueError: Expected: the path of a file to write. Received: -, which \
is a folder, a device, a pipe or standard output. Choose another path.
    """
    path = no_link(path)
    if path == Path("-") or (path.exists() and not path.is_file()):
        raise ValueError(
            f"Expected: the path of a file to write. Received: {path}, which "
            "is a folder, a device, a pipe or standard output. Choose another "
            "path."
        )
    return path


def no_pattern(path: str | os.PathLike[str]) -> Path:
    """Return the path of an export folder, which must not be a pattern.

    Raises:
        ValueError: If TensorFlow would read the path as a pattern, and not find
            the files.

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


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return a path, which must be on this machine.

    Raises:
        ValueError: If the path is an address such as `gs://bucket/model`,
            begins with `~`, or is not UTF-8.

    Example:
        >>> local_path("gs://bucket/model/1")
        Traceback (most recent call last):
        ValueError: Expected: a folder or file of this machine. Received: \
gs://bucket/model/1, which begins with gs:. Give a path here, and copy what \
is written.
    """
    text = os.fspath(path).replace(os.sep, "/")
    # `Path` removes one of the two slashes; a single letter is a drive.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/+", text)
    if scheme:
        received = f"{scheme[1]}://{text[scheme.end() :]}"
        raise ValueError(
            "Expected: a folder or file of this machine. Received: "
            f"{received}, which begins with {scheme[1]}:. Give a path here, "
            "and copy what is written."
        )
    # As in a shell, which leaves the name of an unknown user as it is.
    if text.startswith("~") and os.path.expanduser(text) != text:
        raise ValueError(
            "Expected: a folder or file of this machine. Received: "
            f"{text}, which begins with ~. Only a shell replaces it, and not "
            f"after a =. Write {os.path.expanduser(text)}."
        )
    # Python keeps other bytes of a name as lone surrogates.
    if re.search("[\ud800-\udfff]", text):
        raise ValueError(
            f"Expected: a path in UTF-8. Received: {text!r}. Rename it."
        )
    return Path(path)
