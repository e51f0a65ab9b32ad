"""Shuffling that makes the lines of a batch a pure function of the step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luong_keras.config.checks import at_least
from luong_keras.data.padding import padded_width
from luong_keras.data.token_ids import PairSelection
from luong_keras.with_tensorflow import tf

_POOL_BATCHES = {"sorted_pools": 64, "authors": 100}


class BatchOrder:
    """The lines of all batches of all epochs, numbered by the global step.

    Args:
        pairs: The pairs that are used, and their lengths.
        batch_size: As in `TrainingBatches`.
        seed: Likewise.
        batching: Likewise.
        pool_batches: Likewise.
        mixture: The pairs that an epoch takes from each source; None if each
            pair occurs once per epoch.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        pairs: PairSelection,
        batch_size: int,
        seed: int,
        batching: str = "sorted_pools",
        pool_batches: int | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        if batching not in _POOL_BATCHES:
            raise ValueError(
                f"`batching` must be one of {tuple(_POOL_BATCHES)}. "
                f"Received: {batching!r}."
            )
        if pool_batches is None:
            pool_batches = _POOL_BATCHES[batching]
        if mixture is not None and batching == "authors":
            raise ValueError(
                "`weights` mix the lines, and `batching='authors'` takes them "
                "in their order. Received: both. Leave one out."
            )
        at_least(1, batch_size=batch_size, pool_batches=pool_batches)
        at_least(0, seed=seed)
        self.batch_size = batch_size
        self.seed = seed
        self.batching = batching
        self.pool_batches = pool_batches
        self._pairs = pairs
        self._mixture = mixture

    @property
    def pairs_per_epoch(self) -> int:
        """The number of pairs per epoch."""
        return len(self._pairs.lines)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches per epoch."""
        return -(-len(self._pairs.lines) // self.batch_size)

    @property
    def pools_per_epoch(self) -> int:
        """The number of pools per epoch."""
        return -(-self.steps_per_epoch // self.pool_batches)

    def pool_lines(self, epoch: int, pool: int) -> list[np.ndarray]:
        """Compute the lines of the corpus in the batches of a pool.

        Args:
            epoch: The epoch, from 0.
            pool: The pool in the epoch, from 0.

        Returns:
            (B,) line numbers of each batch, in the order of training.
        """
        size = self.pool_batches * self.batch_size
        count = len(self._pairs.lines)
        if self.batching == "authors":
            lines = self._pairs.lines[pool * size : (pool + 1) * size]
            return sorted_batches(
                lines, self._pairs.target_lengths[lines], self.batch_size
            )
        stop = min((pool + 1) * size, count)
        if self._mixture is not None:
            places = self._mixture.places(pool * size, stop, epoch)
        else:
            places = shuffled_range(
                pool * size, stop, count, seed=(self.seed, epoch)
            )
        lines = self._pairs.lines[places]
        return pool_batches(
            lines,
            self._pairs.target_lengths[lines],
            self._pairs.source_lengths[lines],
            self.batch_size,
            # The seeds of epochs are not negative, so the two never coincide.
            seed=(-1 - self.seed, epoch * self.pools_per_epoch + pool),
        )

    def lines(self, step: int) -> np.ndarray:
        """Compute the lines of the corpus in the batch of a step.

        Args:
            step: The global step, from 0.

        Returns:
            (B,) line numbers, from 0.
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        pool, place = divmod(place, self.pool_batches)
        return self.pool_lines(epoch, pool)[place]

    def shapes(self, epoch: int = 0, widths: Sequence[int] = ()) -> np.ndarray:
        """Compute the shapes of an epoch's batches.

        Args:
            epoch: The epoch, from 0.
            widths: As in `dataset`.

        Returns:
            (N, 3) integer array: for each batch the rows, the columns of
            `source` and the columns of `target_in`.
        """
        sizes = []
        for pool in range(self.pools_per_epoch):
            for lines in self.pool_lines(epoch, pool):
                source = self._pairs.source_lengths[lines].max()
                target = self._pairs.target_lengths[lines].max() + 1  # `<s>`
                sizes.append((len(lines), source, target))
        shapes = np.array(sizes, np.int64)
        shapes[:, 1:] = padded_width(shapes[:, 1:], widths)
        return shapes

    def padding_share(
        self, epoch: int = 0, widths: Sequence[int] = ()
    ) -> float:
        """Compute the share of padding in an epoch's batches.

        Args:
            epoch: The epoch, from 0.
            widths: As in `dataset`.

        Returns:
            The share of `<pad>` in `source` and `target_in`, from 0 to 1.
        """
        rows, source, target = self.shapes(epoch, widths).T
        lines = np.concatenate(
            [
                lines
                for pool in range(self.pools_per_epoch)
                for lines in self.pool_lines(epoch, pool)
            ]
        )
        words = len(lines) + sum(
            int(lengths[lines].sum())
            for lengths in (
                self._pairs.source_lengths,
                self._pairs.target_lengths,
            )
        )
        return float(1 - words / (rows * (source + target)).sum())


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
            not positive, or a source has no pair.

    Example:
        >>> mixture = Mixture([2, 6], [3, 1], seed=1)
        >>> mixture.shares.tolist()
        [6, 2]
        >>> drawn = mixture.places(0, 8, epoch=0)
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
        if min(weights) <= 0:
            raise ValueError(
                f"`weights` must be positive. Received: {list(weights)}."
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
        self.shares = _round_shares(int(self.counts.sum()), self.weights)

    def places(self, start: int, stop: int, epoch: int) -> np.ndarray:
        """Compute the pairs at a range of places in an epoch.

        Args:
            start: The first place, from 0.
            stop: The place after the last one, at most the number of pairs.
            epoch: The epoch, from 0.

        Returns:
            (stop - start,) int64 array, the numbers of the pairs.
        """
        total = int(self.counts.sum())
        shuffled = shuffled_range(start, stop, total, seed=(self.seed, epoch))
        starts = np.cumsum(self.shares) - self.shares
        source = np.searchsorted(starts, shuffled, side="right") - 1
        # A source without a share starts at the same place as the next one:
        # side="right" finds the last of them, which has a share.
        place = epoch * self.shares[source] + shuffled - starts[source]
        passes, place = np.divmod(place, self.counts[source])
        # The seeds of sources never coincide with the seed of the epoch.
        seeds = np.stack([self.seed + ((source + 1) << 32), passes], -1)
        pairs = shuffled_places(place, self.counts[source], seeds)
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


def shuffled_range(
    start: int, stop: int, count: int, seed: tuple[int, int]
) -> np.ndarray:
    """Compute a part of a shuffled `range(count)` without the rest.

    Args:
        start: The first place.
        stop: The place after the last one, at most `count`.
        count: The number of integers that are shuffled.
        seed: Two integers; each pair of integers gives another order.

    Returns:
        (stop - start,) int64 array, the numbers at these places.

    Example:
        >>> whole = shuffled_range(0, 10, 10, seed=(1, 0))
        >>> sorted(whole.tolist()) == list(range(10))
        True
        >>> part = shuffled_range(4, 6, 10, seed=(1, 0))
        >>> part.tolist() == whole[4:6].tolist()
        True
    """
    if stop <= start:  # The operation does not accept an empty range.
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
    """Compute one number of each of several shuffled ranges.

    Args:
        places: (n,) integer array, a place in each range.
        counts: (n,) integer array, the length of each range.
        seeds: (n, 2) integer array, the seed of each range.

    Returns:
        (n,) int64 array, the numbers at these places.

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
        # This is what `index_shuffle` calls; `index_shuffle` itself does not
        # accept several seeds, because of their shape.
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
    """Put sentences of similar length into batches.

    Args:
        lines: (n,) line numbers of a pool, in shuffled order.
        target_lengths: (n,) target lengths, the first key of the sorting.
        source_lengths: (n,) source lengths, the second key.
        batch_size: The lines per batch; the batch of the longest lines may be
            smaller.
        seed: Two integers that determine the order of the batches.

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
    """Cut a chunk of lines into batches as the authors' program does.

    Args:
        lines: (n,) line numbers of a chunk, in the order of the file.
        target_lengths: (n,) target lengths; lines of equal length keep their
            order.
        batch_size: The lines per batch; the last batch may be smaller.

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
