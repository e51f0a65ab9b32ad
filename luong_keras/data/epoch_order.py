"""The order of an epoch: a pure function of the seed and the epoch."""

from __future__ import annotations

import numpy as np

from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_FIRST_SEED = 498247692  # of the three that the operation takes


def shuffled_range(
    start: int, stop: int, count: int, seed: tuple[int, int]
) -> np.ndarray:
    """Computes a part of a shuffled `range(count)` without the rest.

    Args:
        start: The first place.
        stop: The place after the last one, at most `count`.
        count: How many numbers are shuffled.
        seed: Two integers; each pair gives another order.

    Returns:
        The numbers at these places, (stop - start,), int64.

    Example:
        >>> whole = shuffled_range(0, 10, 10, seed=(1, 0))
        >>> sorted(whole.tolist()) == list(range(10))
        True
        >>> part = shuffled_range(4, 6, 10, seed=(1, 0))
        >>> part.tolist() == whole[4:6].tolist()
        True
    """
    if stop <= start:  # The op refuses an empty range.
        return np.zeros(0, np.int64)
    with tf.device("CPU:0"):
        return tf.random.experimental.index_shuffle(
            tf.range(start, stop, dtype=tf.int64),
            seed=tf.constant(seed, tf.int64),
            max_index=tf.constant(count - 1, tf.int64),
        ).numpy()


def shuffled_places(
    places: np.ndarray, counts: np.ndarray, seeds: np.ndarray
) -> np.ndarray:
    """Computes single places of several shuffled ranges.

    Args:
        places: A place in each range, (n,).
        counts: How many numbers are shuffled in each, (n,).
        seeds: The two integers of each order, (n, 2).

    Returns:
        The numbers at these places, (n,), int64.

    Example:
        >>> seeds = np.array([[1, 0]] * 2)
        >>> places = np.array([4, 5])
        >>> found = shuffled_places(places, np.array([10, 10]), seeds)
        >>> found.tolist() == shuffled_range(4, 6, 10, seed=(1, 0)).tolist()
        True
    """
    if not places.size:
        return np.zeros(0, np.int64)
    with tf.device("CPU:0"):
        # As `index_shuffle`, whose seeds of more than one order are refused
        # for their shape.
        return tf.raw_ops.RandomIndexShuffle(
            index=tf.constant(places, tf.int64),
            seed=tf.pad(
                tf.constant(seeds, tf.int64),
                [[0, 0], [1, 0]],
                constant_values=_FIRST_SEED,
            ),
            max_index=tf.constant(counts - 1, tf.int64),
            rounds=4,
        ).numpy()


def pool_batches(
    lines: np.ndarray,
    target_lengths: np.ndarray,
    source_lengths: np.ndarray,
    batch_size: int,
    seed: tuple[int, int],
) -> list[np.ndarray]:
    """Puts sentences of like length into batches.

    Args:
        lines: Line numbers of a pool, (n,), in shuffled order.
        target_lengths: Their target lengths, by which they are sorted first.
        source_lengths: Their source lengths, by which ties are broken.
        batch_size: Lines a batch; the last, longest ones may be fewer.
        seed: Two integers that decide the order of the batches.

    Returns:
        The line numbers of each batch, in the order of training.
    """
    lines = lines[np.lexsort((source_lengths, target_lengths))]
    batches = [
        lines[first : first + batch_size]
        for first in range(0, len(lines), batch_size)
    ]
    order = shuffled_range(0, len(batches), len(batches), seed)
    return [batches[place] for place in order]


def sorted_batches(
    lines: np.ndarray, target_lengths: np.ndarray, batch_size: int
) -> list[np.ndarray]:
    """Cuts a chunk of lines into batches as the authors' program does.

    Args:
        lines: Line numbers of a chunk, (n,), in the order of the file.
        target_lengths: Their target lengths; equal ones keep their order.
        batch_size: Lines a batch; the last, longest ones may be fewer.

    Returns:
        The line numbers of each batch, from short to long.

    Example:
        >>> chunk = np.arange(5)
        >>> batches = sorted_batches(chunk, np.array([3, 1, 2, 1, 3]), 2)
        >>> [batch.tolist() for batch in batches]
        [[1, 3], [2, 0], [4]]
    """
    lines = lines[np.argsort(target_lengths, kind="stable")]
    return [
        lines[first : first + batch_size]
        for first in range(0, len(lines), batch_size)
    ]
