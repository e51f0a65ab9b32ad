"""Files that a folder names and that must lie in it."""

from pathlib import Path


def inside(folder: str | Path, name: str | Path) -> Path:
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
        >>> inside("runs/mine", "dictionary.txt").as_posix()
        'runs/mine/dictionary.txt'
        >>> inside("runs/mine", "../theirs/dictionary.txt")
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
