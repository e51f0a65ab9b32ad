"""How often each word of a text occurs, counted on several cores."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from luong_keras.missing_package import missing_package
from luong_keras.text.threads import in_threads

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_LINES_PER_CALL = 4096


def count_words(
    lines: Iterable[str],
    split: Callable[[tf.Tensor], tf.RaggedTensor],
    threads: int | None = 1,
) -> Counter[bytes]:
    """Counts the words of a text.

    Args:
        lines: Sentences.
        split: Makes words (B, None) of sentences (B,), in the graph.
        threads: How many threads count, one a core when None; the counts are
            the same.

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

    def count(batch: list[str]) -> tuple[list[bytes], list[int]]:
        words, counts = counted(tf.constant(batch, tf.string))
        return words.numpy().tolist(), counts.numpy().tolist()

    totals: Counter[bytes] = Counter()
    for words, counts in in_threads(count, _batches(lines), threads):
        for word, times in zip(words, counts, strict=True):
            totals[word] += times
    return totals


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_CALL)):
        yield batch
