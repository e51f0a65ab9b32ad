"""The files of a corpus that is being written."""

from __future__ import annotations

import array
import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luong_keras.data.checksum import file_checksum
from luong_keras.data.corpus import (
    COUNTS_FILE,
    FORMAT,
    SIDES,
    offsets_path,
    text_path,
)
from luong_keras.data.pair_checks import SHOWN, CheckedPairs, is_filtered
from luong_keras.data.pair_hashes import pair_hash
from luong_keras.files.atomic_file import disk_errors_named
from luong_keras.files.json_file import write_json

NOTES_FILE = "corpus.partial.json"
_BYTES_PER_CALL = 1 << 24
_LINES_PER_CALL = 8192


class CorpusFiles:
    """Texts and counts; a note of how far they are lets another call go on.

    Use `CorpusFiles.begun`.

    Attributes:
        read: How many pairs have been read.
        skipped: The pairs that cannot be used: by reason, their count and
            first places.
        filtered: Those that are left out on purpose, with examples too.
        samples: The first bad pairs, to be shown.
        parts: The pairs that are left of each source.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key
        self.read = 0
        self.skipped: dict[str, dict[str, Any]] = {}
        self.filtered: dict[str, dict[str, Any]] = {}
        self.samples: list[str] = []
        self.parts: list[int] = []
        self._writers: list[_SideWriter] = []

    @classmethod
    @contextlib.contextmanager
    def begun(cls, folder: Path, key: str) -> Iterator[CorpusFiles]:
        """Opens the files, new ones or those that an earlier call has left.

        Args:
            folder: Where; made if absent.
            key: What the corpus is made of. An earlier call's files are gone
                on with where it had the same, and it is not empty.

        Yields:
            The files, which are closed at the end.
        """
        files = cls(folder, key)
        folder.mkdir(parents=True, exist_ok=True)
        # Without this file the folder does not count as a corpus.
        (folder / COUNTS_FILE).unlink(missing_ok=True)
        sizes = files._noted()
        if sizes is None:
            # New files, not new content: an open corpus keeps its map.
            for side in SIDES:
                for end in ("txt", "*npy"):
                    for old in folder.glob(f"{side}.{end}"):
                        old.unlink()
            sizes = dict.fromkeys(SIDES, 0)
        files._writers = [
            _SideWriter(folder, side, sizes[side]) for side in SIDES
        ]
        try:
            yield files
        finally:
            files.close()

    @property
    def count(self) -> int:
        """The pairs that are written."""
        return self._writers[0].count

    def written_hashes(self) -> Iterator[np.ndarray]:
        """The numbers of the pairs that an earlier call has written."""
        if not self.count:
            return
        texts = [text_path(self.folder, side) for side in SIDES]
        with (
            open(texts[0], encoding="utf-8", newline="\n") as sources,
            open(texts[1], encoding="utf-8", newline="\n") as targets,
        ):
            pairs = zip(sources, targets, strict=True)
            hashes = np.fromiter(
                (pair_hash(s[:-1], t[:-1]) for s, t in pairs),
                np.uint64,
                self.count,
            )
        yield hashes

    def leave_out(self, reason: str, place: Any, shown: str) -> None:
        """Notes a pair that is left out, if few were before it.

        Args:
            reason: Why.
            place: Where it stands.
            shown: The pair, to be shown.
        """
        on_purpose = is_filtered(reason)
        entries = self.filtered if on_purpose else self.skipped
        entry = entries.setdefault(reason, {"count": 0, "first_lines": []})
        if len(entry["first_lines"]) >= SHOWN:
            return
        entry["first_lines"].append(place)
        if on_purpose:
            entry.setdefault("examples", []).append(shown)
        else:
            self.samples.append(f"{place} ({reason}): {shown}")

    def write(
        self, checked: CheckedPairs, parts: Sequence[int], read: int
    ) -> None:
        """Writes what is left of a chunk.

        Args:
            checked: That; the reasons in it have been told to `leave_out`.
            parts: The source of each pair that is left.
            read: How many pairs the chunk had.
        """
        for writer, text, sizes in zip(
            self._writers, checked.texts, checked.sizes, strict=True
        ):
            writer.write(text, sizes)
        for reason, count in checked.counts.items():
            entries = self.filtered if is_filtered(reason) else self.skipped
            entries[reason]["count"] += count
        counts = np.bincount(np.asarray(parts, np.int64))
        for part, count in enumerate(counts.tolist()):
            while len(self.parts) <= part:
                self.parts.append(0)
            self.parts[part] += count
        self.read += read

    def note(self) -> None:
        """Writes down how far the files are, for a call that goes on."""
        if not self.key:
            return
        for writer in self._writers:
            writer.sync()
        notes = {
            "key": self.key,
            "read": self.read,
            "bytes": {w.side: w.offsets[-1] for w in self._writers},
            "skipped": self.skipped,
            "filtered": self.filtered,
            "samples": self.samples,
            "parts": self.parts,
        }
        write_json(self.folder / NOTES_FILE, notes)

    def _noted(self) -> dict[str, int] | None:
        """Takes over what was noted; the bytes of both texts, if it was."""
        path = self.folder / NOTES_FILE
        if not path.exists():
            return None
        try:
            notes = json.loads(path.read_text(encoding="utf-8"))
            sizes = notes.pop("bytes")
            whole = all(
                text_path(self.folder, side).stat().st_size >= sizes[side]
                for side in SIDES
            )
            if not self.key or notes.pop("key") != self.key or not whole:
                raise ValueError("The notes are of other files.")
        except (OSError, ValueError, KeyError, TypeError):
            path.unlink()
            return None
        for name, value in notes.items():
            setattr(self, name, value)
        return sizes

    def close(self) -> None:
        """Closes the texts, with all of them on disk."""
        for writer in self._writers:
            writer.close()

    def finish(self) -> None:
        """Writes the offsets and, as one step, the file that is the last."""
        files = {}
        for writer in self._writers:
            offsets = offsets_path(self.folder, writer.side)
            with disk_errors_named(offsets, atomic=False):
                np.save(offsets, np.frombuffer(writer.offsets, dtype=np.int64))
            for path in (text_path(self.folder, writer.side), offsets):
                files[path.name] = {
                    "bytes": path.stat().st_size,
                    "crc32": file_checksum(path),
                }
        description: dict[str, Any] = {
            "format": FORMAT,
            "pairs": self.count,
            "skipped": self.skipped,
            "files": files,
            "key": self.key,
        }
        # As before there were such, where there are none.
        if self.filtered:
            description["filtered"] = self.filtered
        if len(self.parts) > 1:
            description["parts"] = self.parts
        write_json(self.folder / COUNTS_FILE, description)
        (self.folder / NOTES_FILE).unlink(missing_ok=True)


class _SideWriter:
    """Writes one side's text and keeps the places of its lines."""

    def __init__(self, folder: Path, side: str, size: int) -> None:
        self.folder, self.side = folder, side
        self.path = text_path(folder, side)
        self.offsets = array.array("q", [0])
        with disk_errors_named(self.path, atomic=False):
            mode = "r+b" if size else "wb"
            self.file = open(self.path, mode)  # noqa: SIM115
        if size:
            self.file.truncate(size)
            self._find_lines()

    def _find_lines(self) -> None:
        """Reads where the lines end that an earlier call has written."""
        start = 0
        while block := self.file.read(_BYTES_PER_CALL):
            found = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            self.offsets.frombytes((found + start + 1).astype("q").tobytes())
            start += len(block)

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def write(self, text: bytes, sizes: np.ndarray) -> None:
        with disk_errors_named(self.path, atomic=False):
            self.file.write(text)
        stops = self.offsets[-1] + np.cumsum(sizes, dtype=np.int64)
        self.offsets.frombytes(stops.tobytes())

    def sync(self) -> None:
        with disk_errors_named(self.path, atomic=False):
            self.file.flush()
            os.fsync(self.file.fileno())

    def close(self) -> None:
        if not self.file.closed:
            with disk_errors_named(self.path, atomic=False), self.file:
                self.sync()
