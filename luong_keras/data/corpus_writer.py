"""Checks sentence pairs, in processes, and writes them as a corpus."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

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
    REASONS,
    SHOWN,
    Preprocess,
    check_pairs,
    check_scripts,
    shown_pair,
)
from luong_keras.files.atomic_file import disk_errors_named, write_json
from luong_keras.missing_package import needs
from luong_keras.tables import counted
from luong_keras.text.threads import available_cores, batches_of, in_order

_PAIRS_PER_CALL = 8192
# So many are checked before other processes are started.
_CALLS_ALONE = 8
_CALLS_ALONE_PREPARING = 1  # sacremoses takes ten times as long


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
    r"""Checks sentence pairs and writes them into a folder, in one pass.

    Memory does not grow with the text, but for about 70 bytes a pair where
    duplicates are left out. Control characters inside a sentence, line ends
    among them, become a space.

    Args:
        pairs: Source and target sentences. One that has a `place`, such as
            `train.en:7`, is named by it, the others by their number from 1;
            one that has a `part` counts for that source.
        folder: Where to write; made if absent. A corpus there is replaced.
        preprocess_source: Applied to each source sentence, for example a
            `luong_keras.text.preprocessing.Preprocessor`.
        preprocess_target: Applied to each target sentence.
        max_skipped: The share of the pairs that may be bad, with an empty
            side or what cannot be written: they are left out and counted.
            With 0 the first one is an error.
        filters: Which good pairs are left out all the same; none when None.
        processes: How many processes check, all cores when None; the corpus
            is the same.
        progress: Called with the number of further pairs read.
        key: Kept with the corpus, to tell later what it was made of.

    Returns:
        The corpus, opened.

    Raises:
        ValueError: A bad pair with `max_skipped=0`, named by its place, no
            good pair at all, or more than `max_skipped` bad ones, of which
            it shows some.

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
    prepares = any(prepare is not None for prepare in preprocess)
    alone = _CALLS_ALONE_PREPARING if prepares else _CALLS_ALONE
    check = functools.partial(
        check_pairs, preprocess=preprocess, filters=filters
    )
    folder = Path(folder)
    left_out = _LeftOut(strict=max_skipped == 0)
    parts: Counter[int] = Counter()
    seen: set[int] = set()
    number = 0
    chunks, sent = itertools.tee(batches_of(pairs, _PAIRS_PER_CALL))
    # Other processes are sent no places.
    rows = (
        [(pair[0], pair[1], getattr(pair, "problem", None)) for pair in chunk]
        for chunk in sent
    )
    with _texts(folder) as files:
        for found, chunk in zip(
            mapped(check, rows, processes, alone), chunks, strict=True
        ):
            kept: tuple[list[bytes], list[bytes]] = [], []
            for pair, result in zip(chunk, found, strict=True):
                number += 1
                if filters.duplicates and not isinstance(result, str):
                    if result[2] in seen:
                        result = "duplicate"
                    else:
                        seen.add(result[2])
                if isinstance(result, str):
                    left_out.add(result, getattr(pair, "place", number), pair)
                else:
                    kept[0].append(result[0])
                    kept[1].append(result[1])
                    parts[getattr(pair, "part", 0)] += 1
            for file, lines in zip(files, kept, strict=True):
                with disk_errors_named(Path(file.name), atomic=False):
                    file.write(b"".join(line + b"\n" for line in lines))
            if progress is not None:
                progress(len(chunk))
    left_out.check(number, parts.total(), max_skipped)
    description = {
        "format": FORMAT,
        "pairs": parts.total(),
        "skipped": left_out.skipped,
        "files": {
            path.name: {
                "bytes": path.stat().st_size,
                "crc32": file_checksum(path),
            }
            for path in (text_path(folder, side) for side in SIDES)
        },
        "key": key,
        "filtered": left_out.filtered,
        "parts": [parts[i] for i in range(max(parts) + 1)],
    }
    write_json(folder / COUNTS_FILE, description)
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


class _LeftOut:
    """The pairs that are left out: by reason, their count and first places."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.skipped: dict[str, dict[str, Any]] = {}
        self.filtered: dict[str, dict[str, Any]] = {}
        self._samples: list[str] = []

    def add(self, reason: str, place: Any, pair: tuple) -> None:
        """Counts a pair; a bad one is an error where it must be."""
        on_purpose = reason in FILTERED
        if self.strict and not on_purpose:
            raise ValueError(
                f"Pair {place} cannot be used: {REASONS[reason]}. "
                f"Received: {shown_pair(pair)}. Correct it, or leave such "
                "pairs out: `max_skipped=0.05` allows that share."
            )
        entries = self.filtered if on_purpose else self.skipped
        entry = entries.setdefault(reason, {"count": 0, "first_lines": []})
        entry["count"] += 1
        if len(entry["first_lines"]) == SHOWN:
            return
        entry["first_lines"].append(place)
        if on_purpose:
            entry.setdefault("examples", []).append(shown_pair(pair))
        else:
            self._samples.append(f"{place} ({reason}): {shown_pair(pair)}")

    def check(self, read: int, kept: int, max_skipped: float) -> None:
        """Raises where too little is left."""
        if not kept:
            filtered = (
                f", and filtered: {self.filtered}" if self.filtered else ""
            )
            raise ValueError(
                "No sentence pair can be used. Received: "
                f"{counted(read, 'pair')}; left out: {self.skipped}{filtered}."
            )
        bad = sum(entry["count"] for entry in self.skipped.values())
        if bad > max_skipped * read:
            samples = "; ".join(self._samples[:SHOWN])
            raise ValueError(
                f"{bad} of {read} sentence pairs cannot be used, which is "
                f"{bad / read:.1%}. Expected: at most {max_skipped:.1%} "
                "(data.max_skipped). Is this the right file, in UTF-8? Pairs "
                f"left out, with their place: {samples}."
            )


@contextlib.contextmanager
def _texts(folder: Path) -> Iterator[list[BinaryIO]]:
    """Opens the texts of both sides, and at the end has them on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    # Without this file the folder does not count as a corpus.
    (folder / COUNTS_FILE).unlink(missing_ok=True)
    # New files, not new content: an open corpus keeps its map.
    for side in SIDES:
        for old in folder.glob(f"{side}.*"):
            old.unlink()
    paths = [text_path(folder, side) for side in SIDES]
    with contextlib.ExitStack() as stack:
        files: list[BinaryIO] = []
        for path in paths:
            with disk_errors_named(path, atomic=False):
                files.append(open(path, "wb"))  # noqa: SIM115
            # Its end is on disk by then, or was reported as missing.
            stack.callback(_close, files[-1])
        yield files
        for path, file in zip(paths, files, strict=True):
            with disk_errors_named(path, atomic=False):
                file.flush()
                os.fsync(file.fileno())


def _close(file: BinaryIO) -> None:
    with contextlib.suppress(OSError):
        file.close()


Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    processes: int | None,
    alone: int = 0,
) -> Iterator[Result]:
    """Applies a function to chunks, in their order.

    The results are those of one process, whatever the number. At most two
    chunks a process are on their way, so memory does not grow with their
    number.

    Args:
        function: What can be sent to another process, with its results.
        chunks: The chunks.
        processes: How many processes; all cores where None.
        alone: How many chunks are done here first: for few of them, no process
            is started.

    Yields:
        The results.

    Raises:
        RuntimeError: A process was ended from outside.

    Example:
        >>> list(mapped(len, ["a", "bc"], processes=1))
        [1, 2]
    """
    chunks = iter(chunks)
    processes = available_cores() if processes is None else processes
    here = itertools.islice(chunks, alone) if processes > 1 else chunks
    yield from map(function, here)
    first = list(itertools.islice(chunks, 1))
    if first:
        rest = itertools.chain(first, chunks)
        yield from _on_processes(function, rest, processes)


def _end_with(parent: int) -> None:
    """Has this process end soon after its parent, however that ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _on_processes(function, chunks, processes):
    with needs("loky"):
        # Unlike the processes of the standard library, these do not run the
        # user's script again, which need not be written for that.
        import loky
    # They work only on text.
    try:
        pool = loky.ProcessPoolExecutor(
            max_workers=processes,
            env={"LUONG_KERAS_LAZY": "1"},
            initializer=_end_with,
            initargs=(os.getpid(),),
        )
    except OSError as error:
        raise OSError(
            error.errno,
            "The processes that prepare the text cannot be started "
            f"({error.strerror}): they need room in /dev/shm. Make some, or "
            "prepare it in this process: --set data.processes=1",
        ) from error
    try:
        yield from in_order(pool, function, chunks, 2 * processes)
    except loky.process_executor.BrokenProcessPool as error:
        raise RuntimeError(
            "A process that prepares the text was ended from outside, for "
            f"want of memory, say ({error}). Give the same command again; "
            "with --set data.processes=1 it takes less memory."
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)
