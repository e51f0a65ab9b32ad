"""How often each word of a text occurs, counted on several cores."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from luong_keras.files.atomic_file import atomic_path
from luong_keras.missing_package import missing_package
from luong_keras.text.threads import in_threads

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_LINES_PER_CALL = 4096
_CALLS_PER_NOTE = 256


def count_words(
    lines: Iterable[str],
    split: Callable[[tf.Tensor], tf.RaggedTensor],
    threads: int | None = 1,
    note: tuple[Path, str] | None = None,
) -> Counter[bytes]:
    """Counts the words of a text.

    Args:
        lines: Sentences.
        split: Makes words (B, None) of sentences (B,), in the graph.
        threads: How many threads count, one a core when None; the counts are
            the same.
        note: A file for what is counted so far, and what it is made of: a
            call that was interrupted goes on where it was.

    Returns:
        The counts.

    Example:
        >>> lines = ["a b a", "b a"]
        >>> sorted(count_words(lines, tf.strings.split).items())
        [(b'a', 3), (b'b', 2)]
    """

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    def counted(batch):
        words, _, counts = tf.unique_with_counts(split(batch).flat_values)
        return words, counts

    counted.get_concrete_function()  # Threads would trace it once each.

    def count(batch: list[str]) -> tuple[list[bytes], list[int], int]:
        words, counts = counted(tf.constant(batch, tf.string))
        return words.numpy().tolist(), counts.numpy().tolist(), len(batch)

    totals, done = _noted(note)
    batches = _batches(itertools.islice(lines, done, None))
    results = in_threads(count, batches, threads)
    for number, (words, counts, read) in enumerate(results, start=1):
        for word, times in zip(words, counts, strict=True):
            totals[word] += times
        done += read
        if note is not None and number % _CALLS_PER_NOTE == 0:
            _write(note, totals, done)
    return totals


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(itertools.islice(lines, _LINES_PER_CALL)):
        yield batch


def _write(note: tuple[Path, str], totals: Counter[bytes], done: int) -> None:
    path, key = note
    with atomic_path(path) as temporary:
        np.savez(
            temporary,
            key=np.array(key),
            done=np.array(done),
            # No word has white space in it.
            words=np.frombuffer(b"\n".join(totals), np.uint8),
            counts=np.fromiter(totals.values(), np.int64, len(totals)),
        )


def _noted(note: tuple[Path, str] | None) -> tuple[Counter[bytes], int]:
    """What an earlier call has counted, and of how many lines."""
    if note is None or not note[0].exists():
        return Counter(), 0
    try:
        with np.load(note[0]) as found:
            if str(found["key"]) != note[1]:
                return Counter(), 0
            words = found["words"].tobytes().split(b"\n")
            counts = found["counts"].tolist()
            return Counter(dict(zip(words, counts, strict=True))), int(
                found["done"]
            )
    except (OSError, ValueError, KeyError):
        return Counter(), 0
