"""All kinds of sources; a new kind is a module here and a line below."""

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

# By the suffix of a file's name, without the suffix of its compression.
FILE_KINDS: dict[str, FileKind] = {
    ".tsv": delimited.open_tsv,
    ".csv": delimited.open_csv,
    ".jsonl": json_lines.open_json_lines,
    ".ndjson": json_lines.open_json_lines,
    ".tmx": tmx.open_tmx,
    ".xml": tmx.open_tmx,
}
OBJECT_KINDS: tuple[ObjectKind, ...] = (
    python_objects.DATA_FRAME,
    python_objects.HUGGING_FACE,
    python_objects.TENSORFLOW,
    python_objects.PAIRS,  # last: the kinds above are iterable, too
)
# For messages and help texts.
FILE_NAMES = ", ".join(FILE_KINDS)
PACKED_NAMES = ", ".join(SUFFIXES)


def file_kind(path: str | Path) -> FileKind | None:
    """Return the kind of a file of both sides by its name, or None.

    Example:
        >>> file_kind("pairs.tmx.zst") is tmx.open_tmx
        True
        >>> file_kind("train.en") is None
        True
    """
    name = without_compression(path).lower()
    kinds = (kind for end, kind in FILE_KINDS.items() if name.endswith(end))
    return next(kinds, None)


def object_kind(data: Any) -> ObjectKind | None:
    """Return the kind of a Python object, or None."""
    return next((kind for kind in OBJECT_KINDS if kind.matches(data)), None)
