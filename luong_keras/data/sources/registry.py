"""All kinds of sources. A new one is a module here and a line below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from luong_keras.data.parallel_text import SUFFIXES, without_compression
from luong_keras.data.sources import (
    delimited,
    json_lines,
    python_objects,
    tmx,
)
from luong_keras.data.sources.source_kinds import FileKind, ObjectKind

FILE_KINDS: tuple[FileKind, ...] = (
    delimited.TSV,
    delimited.CSV,
    json_lines.KIND,
    json_lines.KIND_BY_ANOTHER_NAME,
    tmx.KIND,
)
OBJECT_KINDS: tuple[ObjectKind, ...] = (
    python_objects.DATA_FRAME,
    python_objects.HUGGING_FACE,
    python_objects.TENSORFLOW,
    python_objects.PAIRS,  # Last: those above can be gone through too.
)
# For messages and helps.
FILE_NAMES = ", ".join(kind.suffix for kind in FILE_KINDS)
PACKED_NAMES = ", ".join(SUFFIXES)


def file_kind(path: str | Path) -> FileKind | None:
    """The kind of a file that holds both sides, by its name.

    Example:
        >>> file_kind("pairs.tmx.zst").suffix
        '.tmx'
        >>> file_kind("train.en") is None
        True
    """
    name = without_compression(path).lower()
    for kind in FILE_KINDS:
        if name.endswith(kind.suffix):
            return kind
    return None


def object_kind(thing: Any) -> ObjectKind | None:
    """The kind of an object of Python, None where it is none."""
    return next((kind for kind in OBJECT_KINDS if kind.matches(thing)), None)
