"""Checks sentence pairs and writes them as a corpus."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from luong_keras.config_data import FilterConfig
from luong_keras.data.corpus import COUNTS_FILE, Corpus
from luong_keras.data.corpus_files import CorpusFiles
from luong_keras.data.pair_checks import (
    REASONS,
    SHOWN,
    CheckedPairs,
    PairChecker,
    Preprocess,
    is_filtered,
    shown_pair,
)
from luong_keras.data.pair_filters import check_scripts
from luong_keras.data.pair_hashes import SeenHashes
from luong_keras.data.processes import mapped

_PAIRS_PER_CALL = 8192
# So many are checked before other processes are started.
_CALLS_ALONE = 8
_CALLS_ALONE_PREPARING = 1  # sacremoses takes ten times as long
# A preparation that is killed loses so much of its work.
_CALLS_PER_NOTE = 64


def write_corpus(
    pairs: Iterable[tuple[str, str]],
    folder: str | Path,
    *,
    preprocess_source: Preprocess | None = None,
    preprocess_target: Preprocess | None = None,
    on_bad_line: str = "skip",
    most_skipped: float = 1.0,
    filters: FilterConfig | None = None,
    processes: int | None = 1,
    progress: Callable[[int], None] | None = None,
    key: str = "",
) -> Corpus:
    r"""Checks sentence pairs and writes them into a folder, in one pass.

    Memory does not grow with the text but for 16 bytes a pair, and 8 more
    where duplicates are left out. Control characters inside a sentence, line
    ends among them, become a space.

    With a `key`, a writing that was interrupted goes on where it was; the
    same pairs are then read again, and not checked.

    Args:
        pairs: Source and target sentences. One that has a `place`, such as
            `train.en:7`, is named by it, the others by their number from 1;
            one that has a `part` counts for that source.
        folder: Where to write; made if absent. A corpus there is replaced.
        preprocess_source: Applied to each source sentence, for example a
            `luong_keras.text.preprocessing.Preprocessor`.
        preprocess_target: Applied to each target sentence.
        on_bad_line: What to do with a pair that has an empty side or cannot
            be written: `"skip"` leaves it out and counts it, `"error"`
            stops.
        most_skipped: The share of the pairs that may be left out for this.
        filters: Which good pairs are left out all the same; none when None.
        processes: How many processes check, all cores when None; the corpus
            is the same.
        progress: Is told how many pairs more have been read.
        key: Kept with the corpus, to tell later what it was made of.

    Returns:
        The corpus, opened.

    Raises:
        ValueError: A bad pair with `on_bad_line="error"`, named by its place,
            no good pair at all, or more than `most_skipped` bad ones, of
            which it shows some.

    Example:
        >>> import tempfile
        >>> import numpy as np
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
    filters = filters or FilterConfig()
    check_scripts(filters)
    preprocess = (preprocess_source, preprocess_target)
    checker = PairChecker(preprocess, filters)
    prepares = any(prepare is not None for prepare in preprocess)
    with CorpusFiles.begun(Path(folder), key) as files:
        writing = _Writing(files, on_bad_line == "error", filters.duplicates)
        for read in writing.check(
            itertools.islice(pairs, files.read, None),
            checker,
            processes,
            _CALLS_ALONE_PREPARING if prepares else _CALLS_ALONE,
        ):
            if progress is not None:
                progress(read)
        files.close()
        _check_counts(files, most_skipped)
        files.finish()
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
    if (Path(folder) / COUNTS_FILE).exists():
        try:
            corpus = Corpus.open(folder)
            if corpus.description["key"] == key:
                return corpus
        except ValueError:
            pass
    return write_corpus(make_pairs(), folder, key=key, **options)


class _Writing:
    """From the pairs to the files, chunk by chunk."""

    def __init__(
        self, files: CorpusFiles, strict: bool, duplicates: bool
    ) -> None:
        self.files, self.strict = files, strict
        # The pairs of the chunks that are being checked, for their places.
        self.waiting: deque[list[tuple]] = deque()
        self.seen = SeenHashes() if duplicates else None
        if self.seen is not None:
            for hashes in files.written_hashes():
                self.seen.add(hashes)

    def check(
        self,
        pairs: Iterable[tuple],
        checker: PairChecker,
        processes: int | None,
        alone: int,
    ) -> Iterator[int]:
        """Writes what is left of the pairs; gives how many were read."""
        if self.files.read:
            yield self.files.read
        chunks = self._chunks(pairs)
        results = mapped(checker, chunks, processes, alone)
        for number, (_, checked) in enumerate(results, start=1):
            chunk = self.waiting.popleft()
            self._write(chunk, checked)
            yield len(chunk)
            if number % _CALLS_PER_NOTE == 0:
                self.files.note()

    def _chunks(self, pairs: Iterable[tuple]) -> Iterator[list[tuple]]:
        pairs = iter(pairs)
        while chunk := list(itertools.islice(pairs, _PAIRS_PER_CALL)):
            self.waiting.append(chunk)
            yield [
                ((pair[0], pair[1]), getattr(pair, "problem", None))
                for pair in chunk
            ]

    def _write(self, chunk: list[tuple], checked: CheckedPairs) -> None:
        if self.seen is not None and checked.hashes is not None:
            checked = checked.without(self.seen.add(checked.hashes))
        for reason, number in checked.left_out:
            pair = chunk[number]
            place = getattr(pair, "place", self.files.read + number + 1)
            if self.strict and not is_filtered(reason):
                raise ValueError(
                    f"Pair {place} cannot be used: {REASONS[reason]}. "
                    f"Received: {shown_pair(pair)}. Correct it, or leave such "
                    "pairs out with `on_bad_line='skip'`."
                )
            self.files.leave_out(reason, place, shown_pair(pair))
        parts = [getattr(chunk[number], "part", 0) for number in checked.kept]
        self.files.write(checked, parts, len(chunk))


def _check_counts(files: CorpusFiles, most_skipped: float) -> None:
    """Raises where too little is left."""
    number, skipped = files.read, files.skipped
    if not files.count:
        filtered = f", and filtered: {files.filtered}" if files.filtered else ""
        raise ValueError(
            f"No sentence pair can be used. Received: {number} pairs, of "
            f"which were left out: {skipped}{filtered}."
        )
    left_out = sum(entry["count"] for entry in skipped.values())
    if left_out > most_skipped * number:
        raise ValueError(
            f"{left_out} of {number} sentence pairs cannot be used, which is "
            f"{left_out / number:.1%}. Expected: at most {most_skipped:.1%} "
            "(data.most_skipped). Is this the right file, in UTF-8? Pairs "
            "left out, with their place: "
            f"{'; '.join(files.samples[:SHOWN])}."
        )
