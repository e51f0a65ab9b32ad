"""All kinds of sources. A new one is a module here and a line below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from luong_keras.data.compression import SUFFIXES, without_compression
from luong_keras.data.sources import (
    csv_file,
    data_frame,
    hugging_face,
    json_lines,
    pairs,
    tensorflow_dataset,
    tmx,
    tsv,
)
from luong_keras.data.sources.source_kinds import FileKind, ObjectKind

FILE_KINDS: tuple[FileKind, ...] = (
    tsv.KIND,
    csv_file.KIND,
    json_lines.KIND,
    json_lines.KIND_BY_ANOTHER_NAME,
    tmx.KIND,
)
OBJECT_KINDS: tuple[ObjectKind, ...] = (
    data_frame.KIND,
    hugging_face.KIND,
    tensorflow_dataset.KIND,
    pairs.KIND,  # Last: those above can be gone through too.
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
