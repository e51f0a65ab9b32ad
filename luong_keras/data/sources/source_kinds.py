"""What a kind of source has to bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.data.sources.columns import Wanted
from luong_keras.data.sources.placed_pair import PlacedPair


@dataclass(frozen=True)
class FileKind:
    """A kind of file that holds both sides.

    Attributes:
        suffix: The end of such a file's name, unpacked: `.tsv`.
        choose: Looks at the beginning of a file and decides how it is read:
            its columns, or whatever `read` takes. It has a `note`, what to
            tell the user, or None.
        read: Reads the pairs: of a path, what `choose` returned, and whether
            bad lines are marked instead of an error.
    """

    suffix: str
    choose: Callable[[Path, Wanted], Any]
    read: Callable[[Path, Any, bool], Iterator[PlacedPair]]


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object of Python that holds pairs.

    Attributes:
        matches: Whether an object is of this kind; imports nothing.
        read: The pairs of one, of texts or, where there is none, of None;
            and a note of what was guessed, or None.
    """

    matches: Callable[[Any], bool]
    read: Callable[[Any, Wanted], tuple[Iterable[tuple[Any, Any]], str | None]]


def is_of(thing: object, package: str, name: str) -> bool:
    """Whether an object's class, or one that it inherits, is this one.

    Without importing the package: who gives such an object has done so.

    Example:
        >>> from collections import OrderedDict
        >>> is_of(OrderedDict(), "collections", "OrderedDict")
        True
    """
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(thing).__mro__
    )
