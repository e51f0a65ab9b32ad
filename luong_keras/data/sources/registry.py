"""All kinds of sources; a new kind is a module here and a line below."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from luong_keras.data.sources import (
    delimited,
    json_pairs,
    python_objects,
    tmx,
)
from luong_keras.data.sources.source_kinds import FileKind, ObjectReader
from luong_keras.files.text_lines import SUFFIXES, without_compression

# By the suffix of a file's name, without the suffix of its compression.
FILE_KINDS: dict[str, FileKind] = {
    ".tsv": delimited.open_tsv,
    ".csv": delimited.open_csv,
    ".jsonl": json_pairs.open_json_lines,
    ".ndjson": json_pairs.open_json_lines,
    ".tmx": tmx.open_tmx,
    ".xml": tmx.open_tmx,
}
# By the package and the name of a class. The packages are not imported: whoever
# passes such an object has imported it.
OBJECT_READERS: dict[tuple[str, str], ObjectReader] = {
    ("pandas", "DataFrame"): python_objects.read_frame,
    ("tensorflow", "DatasetV2"): python_objects.read_tensorflow,
}
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


def object_reader(data: Any) -> ObjectReader | None:
    """Return the reader of a Python object, or None.

    Example:
        >>> object_reader([("a cat", "eine Katze")]).__name__
        'read_iterable'
        >>> object_reader("a cat") is None
        True
    """
    for base in type(data).__mro__:
        key = base.__module__.split(".")[0], base.__name__
        if key in OBJECT_READERS:
            return OBJECT_READERS[key]
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return python_objects.read_iterable
    return None
