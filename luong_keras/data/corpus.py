"""A parallel corpus on disk, with random access to its lines."""

from __future__ import annotations

import hashlib
import json
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from luong_keras.files.path_checks import no_link

SIDES = ("source", "target")
COUNTS_FILE = "corpus.json"
FORMAT = 1  # increased when the format of the files changes
_KEYS = ("format", "files", "pairs", "skipped", "key")


class Corpus:
    r"""Sentence pairs in a folder, read by number through a memory map.

    `luong_keras.data.corpus_writer.write_corpus` writes the folder:

    - `source.txt`, `target.txt`: UTF-8, one sentence per line, ended by `\n`;
    - `corpus.json`: counts and checksums. It is written last, so a folder
      without it is incomplete.

    Use `Corpus.open` to open a corpus.

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
        """Open an existing corpus.

        Args:
            folder: The folder given to `write_corpus`.
            verify: Whether to read all files and compare checksums (about a
                second per gigabyte); sizes are always compared.

        Returns:
            The corpus.

        Raises:
            FileNotFoundError: If the folder has no complete corpus.
            ValueError: If the files are damaged, have another format, or are
                links.
        """
        folder = Path(folder)
        path = no_link(folder / COUNTS_FILE)
        texts = [text_path(folder, side) for side in SIDES]
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no complete corpus in {folder}: {COUNTS_FILE}, "
                "which is written last, is missing. Write the corpus again."
            )
        try:
            description = json.loads(path.read_text(encoding="utf-8"))
            file_format, files, *_ = (description[key] for key in _KEYS)
            files = {text: dict(files[text.name]) for text in texts}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} does not describe a corpus ({error!r}). Write the "
                "corpus again."
            ) from error
        if file_format != FORMAT:
            raise ValueError(
                f"The corpus in {folder} has another format: expected "
                f"{FORMAT}. Received: {file_format}. Write the corpus again."
            )
        for file, expected in files.items():
            _check_file(file, expected, verify)
        return cls(folder, description)

    def __len__(self) -> int:
        """Return the number of sentence pairs."""
        return self.description["pairs"]

    @property
    def skipped(self) -> dict[str, dict[str, Any]]:
        """Bad pairs that were left out: by reason, count and first places."""
        return self.description["skipped"]

    @property
    def filtered(self) -> dict[str, dict[str, Any]]:
        """Pairs that filters left out: by reason, count, places, examples."""
        return self.description.get("filtered", {})

    @property
    def parts(self) -> list[int]:
        """The number of pairs of each source, in the order of the corpus."""
        return self.description.get("parts", [len(self)])

    @property
    def fingerprint(self) -> str:
        """A hash of the sizes and CRC-32 checksums of both texts."""
        files = self.description["files"]
        texts = [files[text_path(self.folder, side).name] for side in SIDES]
        return hashlib.sha256(
            json.dumps(texts, sort_keys=True).encode()
        ).hexdigest()

    def side(self, side: str, indices: np.ndarray) -> list[bytes]:
        """Read lines of one side.

        Args:
            side: `"source"` or `"target"`.
            indices: Line numbers from 0, in any order.

        Returns:
            The sentences, UTF-8.

        Raises:
            IndexError: If a number is outside the corpus.
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
        """Iterate over the sentences of one side in order.

        Args:
            side: `"source"` or `"target"`.

        Yields:
            Each sentence.
        """
        path = text_path(self.folder, side)
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def all_pairs(self) -> Iterator[tuple[str, str]]:
        """Iterate over the sentence pairs in order.

        Returns:
            The pairs.
        """
        return zip(*map(self.side_lines, SIDES), strict=True)

    def lines(self, indices: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """Read sentence pairs.

        Args:
            indices: Line numbers from 0, in any order.

        Returns:
            The source and the target sentences, UTF-8.

        Raises:
            IndexError: If a number is outside the corpus.
        """
        return self.side("source", indices), self.side("target", indices)


def text_path(folder: Path, side: str) -> Path:
    """Return the path of the text of one side.

    Args:
        folder: The corpus's folder.
        side: `"source"` or `"target"`.

    Returns:
        The path.

    Raises:
        ValueError: If the file is a link.
    """
    return no_link(folder / f"{side}.txt")


def _line_starts(text: mmap.mmap) -> np.ndarray:
    """Find the byte offsets of all lines, followed by the size of the text."""
    content = np.frombuffer(text, np.uint8)
    starts = [np.zeros(1, np.int64)]
    for first in range(0, len(content), _CHUNK):
        ends = np.flatnonzero(content[first : first + _CHUNK] == ord("\n"))
        starts.append(ends + first + 1)
    return np.concatenate(starts)


def _check_file(path: Path, expected: dict[str, int], verify: bool) -> None:
    actual: dict[str, int] = {}
    if path.is_file():
        actual["bytes"] = path.stat().st_size
        if verify and actual["bytes"] == expected.get("bytes"):
            actual["crc32"] = file_checksum(path)
    if not actual or any(expected.get(key) != actual[key] for key in actual):
        raise ValueError(
            f"{path} is not the file that was written: expected {expected}. "
            f"Received: {actual or 'no such file'}. Write the corpus again."
        )


_CHUNK = 1 << 22


def file_checksum(path: Path) -> int:
    """Compute the CRC-32 of a file in bounded memory.

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
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return zlib.crc32(content)
