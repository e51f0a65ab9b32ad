"""Reads lines of text files, plain or compressed, and pairs of two of them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import html
import itertools
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from luong_keras.missing_package import needs

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Test sets of WMT: a sentence a segment, and markup around it.
_SEGMENTED = (".sgm", ".sgml", ".xml")
_SEGMENT = re.compile(r"(?is)<seg\b[^>]*>(.*?)</seg>")
_NO_SOURCE = re.compile(r"(?is)<(ref|hyp)\b.*?</\1>")


def read_pairs(
    source_path: str | Path,
    target_path: str | Path,
    keep_bad_bytes: bool = False,
) -> Iterator[tuple[int, str, str]]:
    r"""Reads sentence pairs, line by line.

    Files are UTF-8 text, plain or compressed as their names say (`.gz`, `.xz`,
    `.zst`, `.bz2`). Only `\n` and `\r\n` end a line: a U+2028 stays inside its
    sentence. Of WMT's `.sgm` each segment is a line.

    Args:
        source_path: The source side.
        target_path: The target side, as many lines.
        keep_bad_bytes: Whether bytes that are not UTF-8 become lone
            surrogates, by which `write_corpus` knows and counts such a pair,
            instead of an error.

    Yields:
        The line's number, from 1, and the two sentences.

    Raises:
        FileNotFoundError: A file is missing; raised by the call.
        ValueError: The files differ in length or are empty, or a line is not
            UTF-8; raised when the reading gets there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> size = (folder / "en").write_text("a cat\na dog\n")
        >>> size = (folder / "de").write_text("eine Katze\nein Hund\n")
        >>> for pair in read_pairs(folder / "en", folder / "de"):
        ...     print(pair)
        (1, 'a cat', 'eine Katze')
        (2, 'a dog', 'ein Hund')
    """
    paths = (Path(source_path), Path(target_path))
    for path in paths:
        check_is_file(path)
    return _pairs(*paths, "surrogateescape" if keep_bad_bytes else "strict")


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Reads the lines of one UTF-8 file, plain or compressed.

    Args:
        path: The file; compressed if its name ends in `.gz`, `.xz`, `.zst` or
            `.bz2`. Of WMT's `.sgm` and `.xml` each segment is a line, of
            `.xml` those of the source.

    Yields:
        Each line without its `\n` or `\r\n`.

    Raises:
        FileNotFoundError: The file is missing; raised by the call.
        ValueError: A line is not UTF-8, or the compressed data is damaged;
            raised when the reading gets there.
    """
    path = Path(path)
    check_is_file(path)
    return _sentences(path, "strict")


def _sentences(path: Path, errors: str) -> Iterator[str]:
    """The lines of a file, or its segments."""
    lines = (
        decode_line(line, number, path, errors)
        for number, line in enumerate(raw_lines(path), start=1)
    )
    if not without_compression(path).lower().endswith(_SEGMENTED):
        yield from lines
        return
    found = _SEGMENT.findall(_NO_SOURCE.sub("", "\n".join(lines)))
    if not found:
        raise ValueError(
            f'Expected: segments in {path}, such as `<seg id="1">a '
            "cat</seg>`. Received: none."
        )
    for segment in found:
        yield " ".join(html.unescape(segment).split())


def check_is_file(path: Path) -> None:
    """Raises FileNotFoundError where there is no such file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}. Expected UTF-8 text, one sentence a "
            "line, plain or compressed (`.gz`, `.xz`, `.zst`, `.bz2`)."
        )


def raw_lines(path: Path) -> Iterator[bytes]:
    """Reads the lines of a file as they stand there, unpacked.

    Args:
        path: The file.

    Yields:
        Each line, with its end.

    Raises:
        ValueError: The compressed data is damaged, or the file is of another
            encoding or without line feeds.
    """
    with opened(path) as file:
        first = file.readline()
        _check_encoding(first, path)
        second = file.readline()
        if not second and first.rstrip(b"\r\n").count(b"\r") > 1:
            raise ValueError(
                f"The lines of {path} end as those of old Macs, with a "
                "carriage return alone, so all of it reads as one line. "
                "Expected: UTF-8 text with line feeds. Convert it: tr "
                f"'\\r' '\\n' < {path}"
            )
        yield from itertools.chain(filter(None, (first, second)), file)


def _check_encoding(start: bytes, path: Path) -> None:
    """Refuses UTF-16 and UTF-32, with a mark at the start or without."""
    marks = b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"
    # Of Latin letters, without a mark, every other byte is 0.
    if start.startswith(marks) or 3 * start.count(b"\0") > len(start):
        raise ValueError(
            f"{path} is written in UTF-16 or UTF-32. Expected: UTF-8. Convert "
            f"it: iconv -f UTF-16 -t UTF-8 {path}"
        )


def decode_line(line: bytes, number: int, path: Path, errors: str) -> str:
    """Makes text of a line of `raw_lines`.

    Args:
        line: The line.
        number: Its number, from 1.
        path: The file.
        errors: `"strict"`, or `"surrogateescape"` to keep what is not UTF-8.

    Returns:
        The line without its end, and without byte order marks.

    Raises:
        ValueError: It is not UTF-8.
    """
    # Also in the middle, where files were joined, one after or beside another.
    line = line.replace(_BYTE_ORDER_MARK, b"")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Line {number} of {path} is not UTF-8 ({error.reason} at byte "
            f"{error.start}). Received: {line[:80]!r}. Convert the file to "
            "UTF-8, or remove the pair from both files."
        ) from error


def _pairs(
    source: Path, target: Path, errors: str
) -> Iterator[tuple[int, str, str]]:
    lines = itertools.zip_longest(
        _sentences(source, errors), _sentences(target, errors)
    )
    number = 0
    for number, (source_line, target_line) in enumerate(lines, start=1):
        if source_line is None or target_line is None:
            longer = number + sum(1 for _ in lines)
            shorter = number - 1
            counts = (
                (shorter, longer) if source_line is None else (longer, shorter)
            )
            raise ValueError(
                "The two files of a parallel text must have equally many "
                f"lines. Received: {counts[0]} in {source}, {counts[1]} in "
                f"{target}."
            )
        yield number, source_line, target_line
    if not number:
        raise ValueError(
            f"The parallel text has no sentence: {source} and {target} are "
            "empty."
        )


def _zstd() -> Any:
    """The module, of the standard library from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        with needs("backports.zstd"):
            from backports import zstd
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
        path: The file; compressed if its name ends in one of `SUFFIXES`.

    Yields:
        The bytes, as a file.

    Raises:
        ValueError: The compressed data is damaged, or cut off.
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
    """The errors of damaged compressed data."""
    if suffix == ".zst":
        return EOFError, _zstd().ZstdError
    if suffix == ".xz":
        return EOFError, lzma.LZMAError
    if suffix == ".gz":
        return EOFError, gzip.BadGzipFile, zlib.error
    # What is no bzip2 at all is an OSError without a number.
    return EOFError, OSError
