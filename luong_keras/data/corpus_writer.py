"""Parallel checks of sentence pairs, which are written as a corpus."""

import functools
import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from luong_keras.config.data import FilterConfig
from luong_keras.data.corpus import (
    COUNTS_FILE,
    FORMAT,
    SIDES,
    Corpus,
    file_checksum,
    text_path,
)
from luong_keras.data.pair_checks import (
    FILTERED,
    MAX_EXAMPLES,
    REASONS,
    Checked,
    Preprocess,
    check_pairs,
    check_scripts,
    format_pair,
)
from luong_keras.files.atomic_file import explain_disk_errors, sync, write_json
from luong_keras.missing_package import needs
from luong_keras.tables import pluralize
from luong_keras.text.threads import available_cores, batches_of, map_in_order

_PAIRS_PER_CALL = 8192
# Calls in this process before worker processes start.
_LOCAL_CALLS = 8
_LOCAL_CALLS_PREPROCESSING = 1  # with sacremoses, which takes ten times as long


def write_corpus(
    pairs: Iterable[tuple[str, str]],
    folder: str | Path,
    *,
    preprocess_source: Preprocess | None = None,
    preprocess_target: Preprocess | None = None,
    max_skipped: float = 1.0,
    filters: FilterConfig | None = None,
    processes: int | None = 1,
    progress: Callable[[int], None] | None = None,
    key: str = "",
) -> Corpus:
    r"""Check sentence pairs and write them into a folder, in one pass.

    Memory does not grow with the text, except by about 70 bytes per pair if
    duplicates are left out. Control characters inside a sentence, including
    line ends, become a space.

    Args:
        pairs: Source and target sentences. Messages name a pair by its
            attribute `place`, such as `train.en:7`, or else by its number
            from 1. A pair with a `part` counts for that source.
        folder: The folder, made if absent. A corpus there is replaced; other
            files stay.
        preprocess_source: Applied to each source sentence, for example a
            `luong_keras.text.preprocessing.Preprocessor`.
        preprocess_target: Applied to each target sentence.
        max_skipped: The largest share of bad pairs, which have an empty side
            or cannot be written. They are left out and counted. With 0 the
            first bad pair is an error.
        filters: Which good pairs are also left out; none when None.
        processes: The number of processes, one per core when None. It does
            not change the corpus.
        progress: Called with the number of further pairs read.
        key: A key that is stored with the corpus; see `open_or_write_corpus`.

    Returns:
        The open corpus.

    Raises:
        ValueError: If a pair is bad and `max_skipped` is 0, with the place of
            the pair; if no pair is good; if more than the share `max_skipped`
            is bad, with examples.

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
    filters = filters or FilterConfig()
    check_scripts(filters)
    preprocess = (preprocess_source, preprocess_target)
    folder = Path(folder)
    left_out = _LeftOutPairs(strict=max_skipped == 0)
    parts: Counter[int] = Counter()
    seen_hashes: set[int] = set()
    count = 0
    _remove_corpus(folder)
    paths = [text_path(folder, side) for side in SIDES]
    for chunk in checked_chunks(pairs, preprocess, filters, processes):
        lines: tuple[list[bytes], list[bytes]] = [], []
        for pair, result in chunk:
            count += 1
            if filters.duplicates and not isinstance(result, str):
                if result[2] in seen_hashes:
                    result = "duplicate"
                else:
                    seen_hashes.add(result[2])
            if isinstance(result, str):
                left_out.add(result, getattr(pair, "place", count), pair)
            else:
                lines[0].append(result[0])
                lines[1].append(result[1])
                parts[getattr(pair, "part", 0)] += 1
        for path, side in zip(paths, lines, strict=True):
            with (
                explain_disk_errors(path, atomic=False),
                open(path, "ab") as file,
            ):
                file.write(b"".join(line + b"\n" for line in side))
        if progress is not None:
            progress(len(chunk))
    left_out.check(count, parts.total(), max_skipped)
    for path in paths:
        with explain_disk_errors(path, atomic=False):
            sync(path)
    description = {
        "format": FORMAT,
        "pairs": parts.total(),
        "skipped": left_out.skipped,
        "files": {
            path.name: {
                "bytes": path.stat().st_size,
                "crc32": file_checksum(path),
            }
            for path in paths
        },
        "key": key,
        "filtered": left_out.filtered,
        "parts": [parts[i] for i in range(max(parts) + 1)],
    }
    write_json(folder / COUNTS_FILE, description)
    # The checksums were computed a moment ago.
    return Corpus.open(folder, verify=False)


def checked_chunks(
    pairs: Iterable[tuple[str, str]],
    preprocess: tuple[Preprocess | None, Preprocess | None],
    filters: FilterConfig,
    processes: int | None,
) -> Iterator[list[tuple[tuple[str, str], Checked]]]:
    """Yield chunks of pairs, each pair with the result of `check_pair`."""
    has_preprocessing = any(prepare is not None for prepare in preprocess)
    local_calls = (
        _LOCAL_CALLS_PREPROCESSING if has_preprocessing else _LOCAL_CALLS
    )
    check = functools.partial(
        check_pairs, preprocess=preprocess, filters=filters
    )
    chunks, worker_chunks = itertools.tee(batches_of(pairs, _PAIRS_PER_CALL))
    # Worker processes do not need the places.
    rows = (
        [(pair[0], pair[1], getattr(pair, "problem", None)) for pair in chunk]
        for chunk in worker_chunks
    )
    results = map_chunks(check, rows, processes, local_calls)
    for chunk_results, chunk in zip(results, chunks, strict=True):
        yield list(zip(chunk, chunk_results, strict=True))


def open_or_write_corpus(
    make_pairs: Callable[[], Iterable[tuple[str, str]]],
    folder: str | Path,
    key: str,
    **options: Any,
) -> Corpus:
    """Open the corpus of a folder, or write it if necessary.

    It is written if the folder has no corpus or a corpus with another key or
    more bad pairs than `max_skipped`, if the writing was interrupted, or if a
    file is damaged.

    Args:
        make_pairs: A function that returns the pairs; called only to write.
        folder: The corpus's folder.
        key: A key of everything that the corpus depends on, such as the names,
            sizes and times of the files and the preprocessing.
        **options: The options of `write_corpus`.

    Returns:
        The corpus.
    """
    if (Path(folder) / COUNTS_FILE).exists():
        try:
            corpus = Corpus.open(folder)
            skipped = _count_pairs(corpus.skipped)
            count = len(corpus) + skipped + _count_pairs(corpus.filtered)
            # If too many are skipped, the writing raises the error.
            if (
                corpus.description["key"] == key
                and skipped <= options.get("max_skipped", 1.0) * count
            ):
                return corpus
        except ValueError:
            pass
    return write_corpus(make_pairs(), folder, key=key, **options)


def _count_pairs(entries: dict[str, dict[str, Any]]) -> int:
    return sum(entry["count"] for entry in entries.values())


class _LeftOutPairs:
    """Pairs that are left out: counts and first places by reason."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.skipped: dict[str, dict[str, Any]] = {}
        self.filtered: dict[str, dict[str, Any]] = {}
        self._samples: list[str] = []

    def add(self, reason: str, place: Any, pair: tuple) -> None:
        """Count a pair; if strict, raise ValueError for a bad pair."""
        is_filtered = reason in FILTERED
        if self.strict and not is_filtered:
            raise ValueError(
                f"Pair {place} cannot be used: {REASONS[reason]}. "
                f"Received: {format_pair(pair)}. Correct it, or leave such "
                "pairs out: `max_skipped=0.05` allows that share."
            )
        entries = self.filtered if is_filtered else self.skipped
        entry = entries.setdefault(reason, {"count": 0, "first_lines": []})
        entry["count"] += 1
        if len(entry["first_lines"]) == MAX_EXAMPLES:
            return
        entry["first_lines"].append(place)
        if is_filtered:
            entry.setdefault("examples", []).append(format_pair(pair))
        else:
            self._samples.append(f"{place} ({reason}): {format_pair(pair)}")

    def check(self, count: int, used: int, max_skipped: float) -> None:
        """Check that enough pairs are left."""
        if not used:
            filtered = (
                f", and filtered: {self.filtered}" if self.filtered else ""
            )
            raise ValueError(
                "No sentence pair can be used. Received: "
                f"{pluralize(count, 'pair')}; left out: "
                f"{self.skipped}{filtered}."
            )
        skipped = _count_pairs(self.skipped)
        if skipped > max_skipped * count:
            samples = "; ".join(self._samples[:MAX_EXAMPLES])
            raise ValueError(
                f"{skipped} of {count} sentence pairs cannot be used, which is "
                f"{skipped / count:.1%}. Expected: at most {max_skipped:.1%} "
                "(data.max_skipped). Is this the right file, in UTF-8? Pairs "
                f"left out, with their place: {samples}."
            )


def _remove_corpus(folder: Path) -> None:
    """Remove the corpus of a folder, which is made if absent."""
    folder.mkdir(parents=True, exist_ok=True)
    # Without this file the folder does not count as a corpus.
    (folder / COUNTS_FILE).unlink(missing_ok=True)
    # Old files are removed, not overwritten: an open corpus maps them.
    for side in SIDES:
        for name in ("txt", "ids*.bin", "offsets*.npy"):
            for old in folder.glob(f"{side}.{name}"):
                old.unlink()


Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def map_chunks(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    processes: int | None,
    local_calls: int = 0,
) -> Iterator[Result]:
    """Apply a function to chunks in order, in several processes.

    The results do not depend on the number of processes. At most two chunks
    per process are pending, so memory does not grow with the number of chunks.

    Args:
        function: A function that, with its results, can be pickled.
        chunks: The chunks.
        processes: The number of processes, one per core when None.
        local_calls: The number of chunks that this process handles first, so
            that few chunks start no processes.

    Yields:
        The results.

    Raises:
        ChildProcessError: If a worker process was killed.

    Example:
        >>> list(map_chunks(len, ["a", "bc"], processes=1))
        [1, 2]
    """
    chunks = iter(chunks)
    processes = available_cores() if processes is None else processes
    local_chunks = (
        itertools.islice(chunks, local_calls) if processes > 1 else chunks
    )
    yield from map(function, local_chunks)
    next_chunk = list(itertools.islice(chunks, 1))
    if next_chunk:
        rest = itertools.chain(next_chunk, chunks)
        yield from _map_in_processes(function, rest, processes)


def _exit_with_parent(parent: int) -> None:
    """Make this process end soon after its parent, even if it is killed."""
    # A terminal sends Ctrl-C to both; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _map_in_processes(function, chunks, processes):
    with needs("loky"):
        # Unlike the standard library's processes, loky's do not import the
        # user's script again, so it needs no `if __name__ == "__main__"`.
        import loky
    # The workers need no backend: they handle only text.
    try:
        pool = loky.ProcessPoolExecutor(
            max_workers=processes,
            env={"LUONG_KERAS_LAZY": "1"},
            initializer=_exit_with_parent,
            initargs=(os.getpid(),),
        )
    except OSError as error:
        raise OSError(
            error.errno,
            "The processes that prepare the text cannot be started "
            f"({error.strerror}): they need space in /dev/shm. Free some, or "
            "prepare the text in this process: --set data.processes=1",
        ) from error
    try:
        yield from map_in_order(pool, function, chunks, 2 * processes)
    except loky.process_executor.BrokenProcessPool as error:
        raise ChildProcessError(
            "A process that prepares the text was killed, possibly for lack "
            f"of memory ({error}). Run the same command again; with "
            "--set data.processes=1 it takes less memory."
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)
