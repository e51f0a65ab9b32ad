"""Orders that are pure functions of their seeds."""

import math
from collections.abc import Sequence

import numpy as np

from luong_keras.with_tensorflow import tf


class Mixture:
    """A mixture of several sources by weight.

    An epoch has as many pairs as all sources together; the weights determine
    the share of each source. The pairs of a source are used in passes: a pass
    contains each pair once, in a new order, and an epoch
    continues the pass of the epoch before. Frequent sources thus repeat
    evenly, and each pair of a rare source is used eventually. The mixture is
    a pure function of the seed and the epoch.

    Args:
        counts: The number of pairs of each source, in the order of the corpus.
        weights: The relative weight of each source in an epoch.
        seed: The seed of the orders, at least 0.

    Raises:
        ValueError: If the numbers of counts and weights differ, a weight is
            not positive or too large, or a source has no pair or no share.

    Example:
        >>> mixture = Mixture([2, 6], [3, 1], seed=1)
        >>> mixture.shares.tolist()
        [6, 2]
        >>> drawn = mixture.pairs(0, 8, epoch=0)
        >>> sorted(np.bincount(drawn, minlength=8)[:2].tolist())
        [3, 3]
    """

    def __init__(
        self, counts: Sequence[int], weights: Sequence[float], seed: int
    ) -> None:
        if len(counts) != len(weights):
            raise ValueError(
                "`weights` must have one weight per source of the text. "
                f"Received: {len(weights)} weights, {len(counts)} sources."
            )
        if min(weights) <= 0 or not math.isfinite(sum(weights) * sum(counts)):
            raise ValueError(
                "`weights` must be positive and finite, also multiplied by "
                f"the number of pairs. Received: {list(weights)}."
            )
        if min(counts) < 1:
            raise ValueError(
                "Every source with a weight must have a pair that can be used. "
                f"Received: sources of {list(counts)} pairs. Leave out the "
                "empty one, or look at what was skipped."
            )
        self.counts = np.array(counts, np.int64)
        self.weights = tuple(float(weight) for weight in weights)
        self.seed = seed
        total = int(self.counts.sum())
        self.shares = _round_shares(total, self.weights)
        if 0 in self.shares:
            raise ValueError(
                "Every source with a weight must have a pair in each epoch. "
                f"Received: the weight {min(weights):g} among {list(weights)}, "
                f"which gives none of {total} pairs. Give at least "
                f"{(sum(weights) - min(weights)) / (total - 1):.4g}, or leave "
                "out this source."
            )

    def pairs(self, start: int, stop: int, epoch: int) -> np.ndarray:
        """Compute the pairs at a range of positions in an epoch.

        Args:
            start: The first position, from 0.
            stop: The position after the last one, at most the number of pairs.
            epoch: The epoch, from 0.

        Returns:
            (stop - start,) int64 array, the numbers of the pairs.
        """
        total = int(self.counts.sum())
        shuffled = shuffled_indices(
            np.arange(start, stop), total, (self.seed, epoch)
        )
        starts = np.cumsum(self.shares) - self.shares
        source = np.searchsorted(starts, shuffled, side="right") - 1
        index = epoch * self.shares[source] + shuffled - starts[source]
        passes, index = np.divmod(index, self.counts[source])
        # Sources of one size have the same order in a pass.
        seeds = np.stack([np.full_like(passes, self.seed), passes], -1)
        pairs = shuffled_indices(index, self.counts[source], seeds)
        return pairs + (np.cumsum(self.counts) - self.counts)[source]


def _round_shares(total: int, weights: Sequence[float]) -> np.ndarray:
    """Compute the number of pairs of each source; the sum is `total`.

    Example:
        >>> _round_shares(10, (1.0, 1.0, 1.0)).tolist()
        [4, 3, 3]
    """
    exact = total * np.array(weights) / sum(weights)
    shares = np.floor(exact).astype(np.int64)
    # The rest goes to the sources that lost the most by rounding down.
    order = np.argsort(-(exact - shares), kind="stable")
    shares[order[: total - int(shares.sum())]] += 1
    return shares


_FIRST_SEED = 498247692  # the first of the operation's three seeds


def shuffled_indices(
    positions: np.ndarray,
    counts: int | np.ndarray,
    seeds: tuple[int, int] | np.ndarray,
) -> np.ndarray:
    """Return the elements at some positions of shuffled ranges.

    The ranges are not shuffled as a whole.

    Args:
        positions: (n,) integer array.
        counts: The length of the range, or (n,) integer array, the length of
            the range of each position.
        seeds: Two integers, or (n, 2) integer array; the lower 32 bits of
            each pair of integers give an order.

    Returns:
        (n,) int64 array, the elements at these positions.

    Example:
        >>> whole = shuffled_indices(np.arange(10), 10, (1, 0))
        >>> sorted(whole.tolist()) == list(range(10))
        True
        >>> part = shuffled_indices(np.array([4, 5]), 10, (1, 0))
        >>> part.tolist() == whole[4:6].tolist()
        True
    """
    if not positions.size:  # The operation does not accept an empty range.
        return np.zeros(0, np.int64)
    seeds = np.array(seeds, np.int64)
    first_seeds = np.full((*seeds.shape[:-1], 1), _FIRST_SEED, np.int64)
    with tf.device("CPU:0"):
        # `tf.random.experimental.index_shuffle` calls this operation, but does
        # not accept several seeds, because of their shape.
        return tf.raw_ops.RandomIndexShuffle(
            index=tf.constant(positions, tf.int64),
            seed=tf.constant(np.concatenate([first_seeds, seeds], -1)),
            max_index=tf.constant(counts - 1, tf.int64),
            rounds=4,
        ).numpy()


def sorted_batches(
    lines: np.ndarray, keys: Sequence[np.ndarray], batch_size: int
) -> list[np.ndarray]:
    """Sort lines by length, and cut them into batches.

    Args:
        lines: (n,) line numbers; lines of equal length keep their order.
        keys: (N,) lengths of all lines of the corpus, the first key first.
        batch_size: The lines per batch; the last batch may be smaller.

    Returns:
        The line numbers of each batch, from short to long.

    Example:
        >>> lengths = np.array([3, 1, 2, 1, 3])
        >>> batches = sorted_batches(np.arange(5), [lengths], 2)
        >>> [batch.tolist() for batch in batches]
        [[1, 3], [2, 0], [4]]
    """
    lines = lines[np.lexsort([key[lines] for key in reversed(keys)])]
    return [
        lines[first : first + batch_size]
        for first in range(0, len(lines), batch_size)
    ]
