"""Compressed files, by the ends of their names."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from luong_keras.missing_package import missing_package


def _zstd() -> Any:
    """The module, of the standard library from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            from backports import zstd
        except ImportError as error:
            raise missing_package("backports.zstd", error) from error
    return zstd


def _open_zstd(path: Path) -> Any:
    return _zstd().open(path, "rb")


_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
    ".bz2": bz2.open,
}
SUFFIXES = tuple(_OPENERS)


def without_compression(path: str | Path) -> str:
    """The name that a file has when it is unpacked.

    Example:
        >>> without_compression("pairs.tsv.zst"), without_compression("a.tsv")
        ('pairs.tsv', 'a.tsv')
    """
    name = str(path)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, unpacked.

    Args:
        path: The file; packed if its name ends in one of `SUFFIXES`.

    Yields:
        The bytes, as a file.

    Raises:
        ValueError: The packed data is damaged, or cut off.
        ImportError: The package that unpacks it is not installed.
    """
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        with open(path, "rb") as file:
            yield file
        return
    with opener(path) as packed:
        try:
            yield cast(BinaryIO, packed)
        except _damages(path.suffix) as error:
            raise ValueError(
                f"{path} is not a whole {_NAMES[path.suffix]} file ({error}). "
                "Get it again."
            ) from error


_NAMES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd", ".bz2": "bzip2"}


def _damages(suffix: str) -> tuple[type[Exception], ...]:
    """What the reading of damaged data raises."""
    if suffix == ".zst":
        return EOFError, _zstd().ZstdError
    if suffix == ".xz":
        return EOFError, lzma.LZMAError
    if suffix == ".gz":
        return EOFError, gzip.BadGzipFile, zlib.error
    # What is no bzip2 at all is an OSError without a number.
    return EOFError, OSError
