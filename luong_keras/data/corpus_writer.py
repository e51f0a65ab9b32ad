"""Checks sentence pairs and writes them as a corpus."""

from __future__ import annotations

import array
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from luong_keras.data.checksum import file_checksum
from luong_keras.data.corpus import (
    COUNTS_FILE,
    FORMAT,
    SIDES,
    Corpus,
    offsets_path,
    text_path,
)
from luong_keras.data.sources.placed_pair import one_line
from luong_keras.files.atomic_file import disk_errors_named
from luong_keras.files.json_file import write_json

Preprocess = Callable[[str], str]

_SHOWN_LINES = 5  # So many line numbers are kept for each reason.
# A sentence of more characters is none: a file without line ends, say. To
# prepare and to tokenize it would take all memory.
LONGEST = 20_000
_REASONS = {
    "empty source": "the source sentence is empty",
    "empty target": "the target sentence is empty",
    "not UTF-8": "a sentence cannot be written as UTF-8",
    "no second column": "there is no tab between source and target",
    "no source": "the record has no source sentence",
    "no target": "the record has no target sentence",
    "no record": "the line cannot be read as a record",
    "too long": f"a sentence has more than {LONGEST:,} characters",
}


def write_corpus(
    pairs: Iterable[tuple[str, str]],
    folder: str | Path,
    *,
    preprocess_source: Preprocess | None = None,
    preprocess_target: Preprocess | None = None,
    on_bad_line: str = "skip",
    most_skipped: float = 1.0,
    key: str = "",
) -> Corpus:
    r"""Checks sentence pairs and writes them into a folder, in one pass.

    Memory does not grow with the text but for 16 bytes a pair. Control
    characters inside a sentence, line ends among them, become a space.

    Args:
        pairs: Source and target sentences. One that has a `place`, such as
            `train.en:7`, is named by it, the others by their number from 1.
        folder: Where to write; made if absent. A corpus there is replaced.
        preprocess_source: Applied to each source sentence, for example a
            `luong_keras.text.preprocessing.Preprocessor`.
        preprocess_target: Applied to each target sentence.
        on_bad_line: What to do with a pair that has an empty side or cannot
            be written: `"skip"` leaves it out and counts it, `"error"`
            stops.
        most_skipped: The share of the pairs that may be left out.
        key: Kept with the corpus, to tell later what it was made of.

    Returns:
        The corpus, opened.

    Raises:
        ValueError: A bad pair with `on_bad_line="error"`, named by its place,
            no good pair at all, or more than `most_skipped` bad ones, of
            which it shows some.

    Example:
        >>> import tempfile
        >>> pairs = [("a cat", "eine Katze"), ("", "nichts"), ("a\nb", "c")]
        >>> corpus = write_corpus(pairs, tempfile.mkdtemp())
        >>> len(corpus), corpus.skipped
        (2, {'empty source': {'count': 1, 'first_lines': [2]}})
        >>> corpus.lines(np.array([1, 0]))
        ([b'a b', b'a cat'], [b'c', b'eine Katze'])
    """
    if on_bad_line not in ("skip", "error"):
        raise ValueError(
            "`on_bad_line` must be 'skip' or 'error'. Received: "
            f"{on_bad_line!r}."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Without this file the folder does not count as a corpus.
    (folder / COUNTS_FILE).unlink(missing_ok=True)
    # New files, not new content: an open corpus keeps its memory map.
    patterns = [f"{side}.{end}" for side in SIDES for end in ("txt", "*npy")]
    for pattern in patterns:
        for old in folder.glob(pattern):
            old.unlink()
    skipped: dict[str, dict[str, Any]] = {}
    samples: list[str] = []
    writers = [_SideWriter(folder, side) for side in SIDES]
    preprocess = (preprocess_source, preprocess_target)
    try:
        number = 0
        for number, pair in enumerate(pairs, start=1):
            place = getattr(pair, "place", number)
            lines, reason = _checked(pair, preprocess)
            if reason is None:
                for writer, line in zip(writers, lines, strict=True):
                    writer.write(line)
            elif on_bad_line == "error":
                raise ValueError(
                    f"Pair {place} cannot be used: {_REASONS[reason]}. "
                    f"Received: {_shown(pair)}. Correct it, or leave such "
                    "pairs out with `on_bad_line='skip'`."
                )
            else:
                entry = skipped.setdefault(
                    reason, {"count": 0, "first_lines": []}
                )
                entry["count"] += 1
                if len(entry["first_lines"]) < _SHOWN_LINES:
                    entry["first_lines"].append(place)
                    samples.append(f"{place} ({reason}): {_shown(pair)}")
    finally:
        for writer in writers:
            writer.close()
    if not writers[0].count:
        raise ValueError(
            f"No sentence pair can be used. Received: {number} pairs, of "
            f"which were left out: {skipped}."
        )
    left_out = number - writers[0].count
    if left_out > most_skipped * number:
        raise ValueError(
            f"{left_out} of {number} sentence pairs cannot be used, which is "
            f"{left_out / number:.1%}. Expected: at most {most_skipped:.1%} "
            "(data.most_skipped). Is this the right file, in UTF-8? Pairs "
            f"left out, with their place: {'; '.join(samples[:_SHOWN_LINES])}."
        )
    _finish(folder, writers, skipped, key)
    # The checksums were computed a moment ago.
    return Corpus.open(folder, verify=False)


def open_or_write_corpus(
    make_pairs: Callable[[], Iterable[tuple[str, str]]],
    folder: str | Path,
    key: str,
    **options: Any,
) -> Corpus:
    """Opens the corpus of a folder, or writes it where it must be written.

    It is written where the folder has none, where the writing was
    interrupted, where a file is damaged, and where it was made of something
    else.

    Args:
        make_pairs: Returns the pairs; called only to write.
        folder: The corpus's folder.
        key: What the corpus is made of, such as the files' names, sizes and
            times and the preprocessing; another key means another corpus.
        **options: As for `write_corpus`.

    Returns:
        The corpus.
    """
    try:
        corpus = Corpus.open(folder)
        if corpus.description["key"] == key:
            return corpus
    except (FileNotFoundError, ValueError):
        pass
    return write_corpus(make_pairs(), folder, key=key, **options)


class _SideWriter:
    """Writes one side's text and keeps the places of its lines."""

    def __init__(self, folder: Path, side: str) -> None:
        self.folder, self.side = folder, side
        self.offsets = array.array("q", [0])
        self.path = text_path(folder, side)
        with disk_errors_named(self.path, atomic=False):
            self.file = open(self.path, "wb")  # noqa: SIM115

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def write(self, line: bytes) -> None:
        try:
            self.file.write(line + b"\n")
        except OSError:
            with disk_errors_named(self.path, atomic=False):
                raise
        self.offsets.append(self.offsets[-1] + len(line) + 1)

    def close(self) -> None:
        if not self.file.closed:
            with disk_errors_named(self.path, atomic=False), self.file:
                self.file.flush()
                os.fsync(self.file.fileno())


def _checked(
    pair: tuple[str, str], preprocess: tuple[Preprocess | None, ...]
) -> tuple[list[bytes], str | None]:
    """Returns the two lines, or the reason why there are none."""
    lines = []
    problem = getattr(pair, "problem", None)
    if problem is not None:
        return [], problem
    if pair[1] is None:
        return [], "no second column"
    for side, sentence, prepare in zip(SIDES, pair, preprocess, strict=True):
        if len(sentence) > LONGEST:
            return [], "too long"
        if prepare is not None:
            sentence = prepare(sentence)
        # Only ASCII spaces are cut off, but any white space counts as empty.
        sentence = one_line(sentence).strip(" ")
        if not sentence.strip():
            return [], f"empty {side}"
        try:
            lines.append(sentence.encode("utf-8"))
        except UnicodeEncodeError:
            return [], "not UTF-8"
    return lines, None


def _shown(pair: tuple[str, str]) -> str:
    return " ||| ".join(repr(side and side[:80]) for side in pair)


def _finish(
    folder: Path,
    writers: list[_SideWriter],
    skipped: dict[str, dict[str, Any]],
    key: str,
) -> None:
    """Writes the offsets, then, as one step, the file that makes it valid."""
    files = {}
    for writer in writers:
        offsets = offsets_path(folder, writer.side)
        with disk_errors_named(offsets, atomic=False):
            np.save(offsets, np.frombuffer(writer.offsets, dtype=np.int64))
        for path in (text_path(folder, writer.side), offsets):
            files[path.name] = {
                "bytes": path.stat().st_size,
                "crc32": file_checksum(path),
            }
    description = {
        "format": FORMAT,
        "pairs": writers[0].count,
        "skipped": skipped,
        "files": files,
        "key": key,
    }
    write_json(folder / COUNTS_FILE, description)
