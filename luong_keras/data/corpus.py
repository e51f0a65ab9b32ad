"""A parallel corpus on disk, from which any lines are read at once."""

from __future__ import annotations

import hashlib
import json
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIDES = ("source", "target")
COUNTS_FILE = "corpus.json"
FORMAT = 1  # Raised when the files change in kind.


class Corpus:
    r"""Sentence pairs in a folder, read by number through a memory map.

    The folder is written by `luong_keras.data.corpus_writer.write_corpus`:

    - `source.txt`, `target.txt`: a sentence a line, UTF-8, ended by `\n`;
    - `corpus.json`: counts and checksums. It is written last, so a folder
      without it is one whose writing was interrupted.

    Use `Corpus.open`.

    Args:
        folder: The folder.
        description: The content of `corpus.json`.
    """

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder
        self.description = description
        self._texts = {}
        self._starts: dict[str, np.ndarray] = {}
        for side in SIDES:
            with open(text_path(folder, side), "rb") as file:
                self._texts[side] = mmap.mmap(
                    file.fileno(), 0, access=mmap.ACCESS_READ
                )

    @classmethod
    def open(cls, folder: str | Path, verify: bool = True) -> Corpus:
        """Opens a corpus that was written before.

        Args:
            folder: The folder given to `write_corpus`.
            verify: Whether to read all files once and compare checksums
                (about a second a gigabyte); sizes are compared in any case.

        Returns:
            The corpus.

        Raises:
            FileNotFoundError: There is no complete corpus in the folder.
            ValueError: The files are not those that were written.
        """
        folder = Path(folder)
        path = folder / COUNTS_FILE
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no complete corpus in {folder}: {COUNTS_FILE}, "
                "which is written last, is missing. Write the corpus again."
            )
        try:
            description = json.loads(path.read_text(encoding="utf-8"))
            written = description["format"]
            files = description["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} does not describe a corpus ({error!r}). Write the "
                "corpus again."
            ) from error
        if written != FORMAT:
            raise ValueError(
                f"The corpus in {folder} has another format: expected "
                f"{FORMAT}. Received: {written}. Write the corpus again."
            )
        for name, expected in files.items():
            _check_file(folder / name, expected, verify)
        return cls(folder, description)

    def __len__(self) -> int:
        """Returns the number of sentence pairs."""
        return self.description["pairs"]

    @property
    def skipped(self) -> dict[str, dict[str, Any]]:
        """Pairs left out: by reason, their count and first line numbers."""
        return self.description["skipped"]

    @property
    def filtered(self) -> dict[str, dict[str, Any]]:
        """Pairs left out on purpose: by reason, count, places, examples."""
        return self.description.get("filtered", {})

    @property
    def parts(self) -> list[int]:
        """The pairs of each of its sources, which follow each other."""
        return self.description.get("parts", [len(self)])

    @property
    def fingerprint(self) -> str:
        """A hash of the text."""
        files = self.description["files"]
        texts = [files[text_path(self.folder, side).name] for side in SIDES]
        return hashlib.sha256(
            json.dumps(texts, sort_keys=True).encode()
        ).hexdigest()

    def side(self, side: str, indices: np.ndarray) -> list[bytes]:
        """Reads lines of one side.

        Args:
            side: `"source"` or `"target"`.
            indices: Line numbers from 0, in any order.

        Returns:
            The sentences, UTF-8.

        Raises:
            IndexError: A number is outside the corpus.
        """
        indices = np.asarray(indices)
        if indices.size and not (
            indices.min() >= 0 and indices.max() < len(self)
        ):
            raise IndexError(
                f"Line numbers must be in [0, {len(self)}). Received: "
                f"{indices.min()} ... {indices.max()}."
            )
        if side not in self._starts:
            self._starts[side] = _line_starts(self._texts[side])
        text, lines = self._texts[side], self._starts[side]
        starts = lines[indices].tolist()
        stops = (lines[indices + 1] - 1).tolist()  # Without the "\n".
        return [
            text[start:stop] for start, stop in zip(starts, stops, strict=True)
        ]

    def side_lines(self, side: str) -> Iterator[str]:
        """Iterates over one side's sentences, in the corpus's order.

        Args:
            side: `"source"` or `"target"`.

        Yields:
            A sentence.
        """
        path = text_path(self.folder, side)
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def lines(self, indices: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """Reads sentence pairs.

        Args:
            indices: Line numbers from 0, in any order.

        Returns:
            The source and the target sentences, UTF-8.

        Raises:
            IndexError: A number is outside the corpus.
        """
        return self.side("source", indices), self.side("target", indices)


def text_path(folder: Path, side: str) -> Path:
    """Returns the path of a side's text.

    Args:
        folder: The corpus's folder.
        side: `"source"` or `"target"`.

    Returns:
        The path.
    """
    return folder / f"{side}.txt"


def _line_starts(text: mmap.mmap) -> np.ndarray:
    """Byte offsets of all lines, and the size of the text at the end."""
    content = np.frombuffer(text, np.uint8)
    found = [np.zeros(1, np.int64)]
    for first in range(0, len(content), _CHUNK):
        ends = np.flatnonzero(content[first : first + _CHUNK] == ord("\n"))
        found.append(ends + first + 1)
    return np.concatenate(found)


def _check_file(path: Path, expected: dict[str, int], verify: bool) -> None:
    found: dict[str, int] = {}
    if path.is_file():
        found["bytes"] = path.stat().st_size
        if verify and found["bytes"] == expected["bytes"]:
            found["crc32"] = file_checksum(path)
    if any(found.get(key) != expected[key] for key in found) or not found:
        raise ValueError(
            f"{path} is not the file that was written: expected {expected}. "
            f"Received: {found or 'no such file'}. Write the corpus again."
        )


_CHUNK = 1 << 22


def file_checksum(path: Path) -> int:
    """Computes the CRC-32 of a file in bounded memory.

    Args:
        path: The file.

    Returns:
        The checksum.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "digits"
        >>> size = path.write_text("123456789")
        >>> hex(file_checksum(path))
        '0xcbf43926'
    """
    checksum = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum
