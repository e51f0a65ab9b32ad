"""Reads a parallel text: two files, or one of two columns."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_pairs(
    source_path: str | Path,
    target_path: str | Path,
    keep_bad_bytes: bool = False,
) -> Iterator[tuple[int, str, str]]:
    r"""Reads sentence pairs, line by line.

    Files are UTF-8 text, plain or, with a name that ends in `.gz`, gzipped.
    Only `\n` and `\r\n` end a line: a U+2028 stays inside its sentence.

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
        _check_is_file(path)
    return _pairs(*paths, "surrogateescape" if keep_bad_bytes else "strict")


def read_columns(
    path: str | Path, keep_bad_lines: bool = False
) -> Iterator[tuple[int, str, str | None]]:
    r"""Reads sentence pairs of one file, `source<tab>target` a line.

    Further columns are left out. Otherwise as `read_pairs`.

    Args:
        path: The file.
        keep_bad_lines: Whether bytes that are not UTF-8 become lone
            surrogates, and the target None where there is no tab, by which
            `write_corpus` counts such a line, instead of an error.

    Yields:
        The line's number, from 1, and the two sentences.

    Raises:
        FileNotFoundError: The file is missing; raised by the call.
        ValueError: The file is empty, or a line is not UTF-8 or has no tab;
            raised when the reading gets there.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "pairs.tsv")
        >>> size = path.write_text("a cat\teine Katze\na dog\tein Hund\n")
        >>> list(read_columns(path))
        [(1, 'a cat', 'eine Katze'), (2, 'a dog', 'ein Hund')]
    """
    path = Path(path)
    _check_is_file(path)
    return _columns(path, keep_bad_lines)


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Reads the lines of one UTF-8 file, plain or gzipped.

    Args:
        path: The file; gzipped if its name ends in `.gz`.

    Yields:
        Each line without its `\n` or `\r\n`.

    Raises:
        FileNotFoundError: The file is missing; raised by the call.
        ValueError: A line is not UTF-8, or the gzip data is damaged; raised
            when the reading gets there.
    """
    path = Path(path)
    _check_is_file(path)
    return (
        _decode(line, number, path, "strict")
        for number, line in enumerate(_raw_lines(path), start=1)
    )


def _check_is_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}. Expected UTF-8 text, one sentence a "
            "line, plain or gzipped (`.gz`)."
        )


def _raw_lines(path: Path) -> Iterator[bytes]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        try:
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
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path} is not a whole gzip file ({error}). Get it again."
            ) from error


def _check_encoding(start: bytes, path: Path) -> None:
    """Refuses UTF-16 and UTF-32, which most programs mark at the start."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise ValueError(
            f"{path} is written in UTF-16 or UTF-32. Expected: UTF-8. Convert "
            f"it: iconv -f UTF-16 -t UTF-8 {path}"
        )


def _decode(line: bytes, number: int, path: Path, errors: str) -> str:
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Line {number} of {path} is not UTF-8 ({error.reason} at byte "
            f"{error.start}). Received: {line[:80]!r}. Convert the file to "
            "UTF-8, or remove the pair from both files."
        ) from error


def _columns(
    path: Path, keep_bad_lines: bool
) -> Iterator[tuple[int, str, str | None]]:
    errors = "surrogateescape" if keep_bad_lines else "strict"
    number = 0
    for number, raw in enumerate(_raw_lines(path), start=1):
        line = _decode(raw, number, path, errors)
        source, tab, target = line.partition("\t")
        if not tab and not keep_bad_lines:
            raise ValueError(
                f"Line {number} of {path} has not two columns. Expected: "
                "source and target, a tab between them. Received: "
                f"{line[:80]!r}. Correct the line, or remove it."
            )
        yield number, source, target.partition("\t")[0] if tab else None
    if not number:
        raise ValueError(f"The parallel text has no sentence: {path} is empty.")


def _pairs(
    source: Path, target: Path, errors: str
) -> Iterator[tuple[int, str, str]]:
    lines = itertools.zip_longest(_raw_lines(source), _raw_lines(target))
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
        yield (
            number,
            _decode(source_line, number, source, errors),
            _decode(target_line, number, target, errors),
        )
    if not number:
        raise ValueError(
            f"The parallel text has no sentence: {source} and {target} are "
            "empty."
        )
