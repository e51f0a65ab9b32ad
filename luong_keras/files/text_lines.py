"""Readers of the lines of text files, plain or compressed."""

import contextlib
import html
import importlib
import itertools
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from luong_keras.missing_package import needs
from luong_keras.tables import pluralize

_CHUNK = 1 << 16  # bytes, the size of a pipe
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# WMT test sets: one sentence per segment, surrounded by markup. Here only their
# sources are read, for translation; `data/sources/tmx.py` reads pairs.
_SEGMENTED = (".sgm", ".sgml", ".xml")
# An element ends before the next tag of its name: otherwise the time would be
# quadratic in the number of unclosed tags.
_SEGMENT = re.compile(
    r"(?i)<seg\b[^<>]*>([^<]*(?:<(?!/?seg\b)[^<]*)*)</seg\s*>"
)
_TAG = re.compile(r"(?i)<(?:seg|ref|hyp)\b")
_NO_SOURCE = re.compile(r"(?i)<(ref|hyp)\b[^<]*(?:<(?!/?\1\b)[^<]*)*</\1\s*>")


def read_lines(path: str | Path, errors: str = "strict") -> Iterator[str]:
    r"""Read the lines of one UTF-8 file, plain or compressed.

    Args:
        path: The file; compressed if its name ends in `.gz`, `.xz`, `.zst` or
            `.bz2`. In WMT's `.sgm` and `.xml` files each segment is a line;
            references and hypotheses in `.xml` files are skipped.
        errors: As in `bytes.decode`; `"surrogateescape"` keeps bytes that are
            not UTF-8.

    Yields:
        Each line without its `\n` or `\r\n`.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If a line is not UTF-8, or the compressed data is damaged;
            raised when reading reaches the place.
    """
    path = Path(path)
    lines = (
        _decode_line(line, number, path, errors)
        for number, line in enumerate(_raw_lines(path), start=1)
    )
    if not without_compression(path).lower().endswith(_SEGMENTED):
        yield from lines
        return
    text = _NO_SOURCE.sub("", "\n".join(lines))
    segments, tags = _SEGMENT.findall(text), _TAG.findall(text)
    if len(tags) != len(segments):
        raise ValueError(
            f"Expected: in {path}, a closing tag for each <seg>, <ref> and "
            f"<hyp>. Received: {len(tags)} such tags around "
            f"{pluralize(len(segments), 'source')}."
        )
    if not segments:
        raise ValueError(
            f'Expected: segments in {path}, such as `<seg id="1">a '
            "cat</seg>`. Received: none."
        )
    for segment in segments:
        yield " ".join(html.unescape(segment).split())


def read_lines_beside(path: Path, count: int) -> list[str]:
    """Read a file with one line for each of `count` sentences.

    Args:
        path: The file, plain or compressed.
        count: The number of sentences, which come from elsewhere.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If it has another number of lines, or is a test set of WMT,
            of which `read_lines` returns only the sources.
    """
    if without_compression(path).lower().endswith(".xml"):
        raise ValueError(
            "Expected: a text file with one line per sentence. Received: "
            f"{path}; only the sources of such a file are read. Write the "
            "lines into a text file."
        )
    lines = list(read_lines(path))
    if len(lines) != count:
        raise ValueError(
            f"Expected: a line for each of the {count} sentences. Received: "
            f"{pluralize(len(lines), 'line')} in {path}."
        )
    return lines


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Read the lines of a file as bytes, decompressed.

    Args:
        path: The file.

    Yields:
        Each line, with its line end.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the compressed data is damaged, or the file has another
            encoding or other line ends.
    """
    with open_decompressed(path) as file:
        first = file.readline()
        second = file.readline()
        _check_first_line(first, not second, path)
        yield from itertools.chain(filter(None, (first, second)), file)


def _check_first_line(line: bytes, is_only: bool, path: Path) -> None:
    """Check that a text is not compressed or UTF-16, and has line feeds."""
    if line.startswith(_COMPRESSED):
        raise ValueError(
            f"{path} is compressed. Expected: UTF-8 text, or a file whose name "
            f"tells its compression ({', '.join(SUFFIXES)}). Rename the file, "
            "or decompress it first, as in zcat text.gz | luong-keras …"
        )
    marks = b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"
    # Without a mark: every other byte of UTF-16 Latin text is 0.
    if line.startswith(marks) or 3 * line.count(b"\0") > len(line):
        raise ValueError(
            f"{path} is written in UTF-16 or UTF-32. Expected: UTF-8. Convert "
            "it: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    if is_only and line.rstrip(b"\r\n").count(b"\r") > 1:
        raise ValueError(
            f"The lines of {path} end only with a carriage return, as on "
            "old Macs, so the whole text reads as one line. "
            "Expected: UTF-8 text with line feeds. Convert it: tr "
            "'\\r' '\\n' < FILE > NEW"
        )


def read_input_parts(size: int) -> Iterator[list[str]]:
    """Yield available lines of standard input, at most `size` at a time.

    Args:
        size: The maximum number of lines of a part.

    Yields:
        Lists of lines.

    Raises:
        ValueError: As in `read_lines`, after the lines before the wrong one.
    """
    name, number, chunk = Path("standard input"), 0, b"\n"
    pending: list[bytes] = []
    while chunk:
        chunk = sys.stdin.buffer.read1(_CHUNK)  # type: ignore[union-attr]
        pending.append(chunk)
        if chunk and b"\n" not in chunk:
            continue  # within a long line
        text = b"".join(pending)
        if text and not chunk:
            text += b"\n"  # The end of the input also ends the last line.
        *raw, rest = text.split(b"\n")
        pending = [rest]
        if raw and number == 0:
            _check_first_line(raw[0], not chunk, name)
        for start in range(0, len(raw), size):
            lines = []
            try:
                for line in raw[start : start + size]:
                    number += 1
                    lines.append(_decode_line(line, number, name, "strict"))
            finally:  # also before the error of a later line
                if lines:
                    yield lines


def _decode_line(line: bytes, number: int, path: Path, errors: str) -> str:
    """Decode a line of `_raw_lines`.

    Args:
        line: The line.
        number: The number of the line, from 1.
        path: The file.
        errors: As in `bytes.decode`.

    Returns:
        The line without its line end and without byte order marks.

    Raises:
        ValueError: If the line is not UTF-8.
    """
    # Joined files, one after or beside another, have marks in the middle.
    line = line.replace(_BYTE_ORDER_MARK, b"")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Line {number} of {path} is not UTF-8 ({error.reason} at byte "
            f"{error.start}). Received: {line[:80]!r}. Convert the text to "
            "UTF-8, or remove the line (in a parallel text, from both files)."
        ) from error


# In the standard library since Python 3.14.
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
# By the suffix of a name: the format, the module that reads it, and the errors
# of damaged data. bz2 raises OSError for files that are not bzip2.
_FORMATS = {
    ".gz": ("gzip", "gzip", ("gzip.BadGzipFile", "zlib.error")),
    ".xz": ("xz", "lzma", ("lzma.LZMAError",)),
    ".zst": ("zstd", _ZSTD, (f"{_ZSTD}.ZstdError",)),
    ".bz2": ("bzip2", "bz2", ("builtins.OSError",)),
}
SUFFIXES = tuple(_FORMATS)
# The first bytes of gzip, xz, zstd and bzip2.
_COMPRESSED = b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh91AY"


def without_compression(path: str | Path) -> str:
    """Return the name of a file without the suffix of its compression.

    Example:
        >>> without_compression("pairs.tsv.zst"), without_compression("a.tsv")
        ('pairs.tsv', 'a.tsv')
    """
    name = str(path)
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in _FORMATS else name


def find_text(path: Path) -> Path:
    """Return the path of a text that is read once, a file or a pipe.

    Args:
        path: The path; `-` is standard input.

    Raises:
        FileNotFoundError: If there is none.
    """
    if path.is_dir() or not (path.exists() or str(path) == "-"):
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"{path} {problem}. Expected UTF-8 text, one sentence a "
            "line, plain or compressed (`.gz`, `.xz`, `.zst`, `.bz2`)."
        )
    return path


@contextlib.contextmanager
def open_decompressed(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its decompressed bytes.

    Args:
        path: The file, which may be a pipe; compressed if its name ends in
            one of `SUFFIXES`. `-` is standard input.

    Yields:
        The bytes, as a file.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the compressed data is damaged or truncated.
        ImportError: If the package that decompresses it is not installed.
    """
    path = find_text(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        is_input = str(path) == "-"
        with (
            contextlib.nullcontext(sys.stdin.buffer)
            if is_input
            else open(path, "rb")
        ) as file:
            yield file
        return
    format_name, module_name, error_names = _FORMATS[suffix]
    with needs(module_name):
        module = importlib.import_module(module_name)
        errors = tuple(map(pkgutil.resolve_name, error_names))
    with module.open(path, "rb") as file:
        try:
            yield file
        except (EOFError, *errors) as error:
            raise ValueError(
                f"{path} is not a whole {format_name} file ({error}). Get it "
                "again."
            ) from error
