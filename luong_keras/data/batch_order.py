"""Shuffling: the lines of a batch as a pure function of the step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
        mixture: What an epoch takes of each source; None where every pair
            comes once.

    Raises:
        ValueError: An argument is out of its range.
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
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("pool_batches", pool_batches, 1),
            ("seed", seed, 0),
        ):
            if value < least:
                raise ValueError(
                    f"`{name}` must be at least {least}. Received: {value}."
                )
        self.batch_size = batch_size
        self.seed = seed
        self.batching = batching
        self.pool_batches = pool_batches
        self._pairs = pairs
        self._mixture = mixture

    @property
    def pairs_per_epoch(self) -> int:
        """The number of pairs that are used."""
        return len(self._pairs.lines)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches of an epoch."""
        return -(-len(self._pairs.lines) // self.batch_size)

    @property
    def pools_per_epoch(self) -> int:
        """The number of pools of an epoch."""
        return -(-self.steps_per_epoch // self.pool_batches)

    def pool_lines(self, epoch: int, pool: int) -> list[np.ndarray]:
        """Computes which lines of the corpus make the batches of a pool.

        Args:
            epoch: The epoch, from 0.
            pool: The pool in the epoch, from 0.

        Returns:
            Line numbers (B,) of each batch, in the order of training.
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
            # No seed of an epoch is negative, so the two never coincide.
            seed=(-1 - self.seed, epoch * self.pools_per_epoch + pool),
        )

    def lines(self, step: int) -> np.ndarray:
        """Computes which lines of the corpus make the batch of a step.

        Args:
            step: The global step, from 0.

        Returns:
            Line numbers (B,), from 0.
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        pool, place = divmod(place, self.pool_batches)
        return self.pool_lines(epoch, pool)[place]

    def shapes(self, epoch: int = 0, widths: Sequence[int] = ()) -> np.ndarray:
        """Computes the shapes of an epoch's batches.

        Args:
            epoch: The epoch, from 0.
            widths: As in `dataset`.

        Returns:
            Rows, columns of `source` and columns of `target_in` of each
            batch, (N, 3).
        """
        found = []
        for pool in range(self.pools_per_epoch):
            for lines in self.pool_lines(epoch, pool):
                source = self._pairs.source_lengths[lines].max()
                target = self._pairs.target_lengths[lines].max() + 1  # `<s>`
                found.append((len(lines), source, target))
        shapes = np.array(found, np.int64)
        shapes[:, 1:] = padded_width(shapes[:, 1:], widths)
        return shapes

    def padding_share(
        self, epoch: int = 0, widths: Sequence[int] = ()
    ) -> float:
        """Computes how much of an epoch's batches is padding.

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
    """The pairs of each source in an epoch, by the sources' weights.

    An epoch has as many pairs as all sources together, and of each source its
    share of them. The pairs of a source follow each other in passes: one pass
    contains each of them once, in its own order, and an epoch continues where
    the last one stopped. So frequent sources repeat evenly, and every pair of a
    rare source comes in the end. All of it is a pure function of the seed and
    the epoch.

    Args:
        counts: The pairs of each source; they lie one source after the other.
        weights: How much of the epoch each source is, relative to the others.
        seed: A number from 0; another one gives other orders.

    Raises:
        ValueError: The numbers do not go together, or a source has no pair.

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
                "`weights` must be as many as the sources of the text. "
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
        self.shares = _shares(int(self.counts.sum()), self.weights)

    def places(self, start: int, stop: int, epoch: int) -> np.ndarray:
        """Computes which pairs stand at some places of an epoch.

        Args:
            start: The first place, from 0.
            stop: The place after the last one, at most the pairs of all.
            epoch: The epoch, from 0.

        Returns:
            Numbers of pairs, (stop - start,), int64.
        """
        total = int(self.counts.sum())
        mixed = shuffled_range(start, stop, total, seed=(self.seed, epoch))
        starts = np.cumsum(self.shares) - self.shares
        source = np.searchsorted(starts, mixed, side="right") - 1
        # Of sources without a share in the epoch one begins where another
        # does: the last of them is the one that has some.
        place = epoch * self.shares[source] + mixed - starts[source]
        passes, place = np.divmod(place, self.counts[source])
        # No number of a source is that of the epoch's own order.
        seeds = np.stack([self.seed + ((source + 1) << 32), passes], -1)
        drawn = shuffled_places(place, self.counts[source], seeds)
        return drawn + (np.cumsum(self.counts) - self.counts)[source]


def _shares(total: int, weights: Sequence[float]) -> np.ndarray:
    """The pairs of each source in an epoch, which are `total` together.

    Example:
        >>> _shares(10, (1.0, 1.0, 1.0)).tolist()
        [4, 3, 3]
    """
    exact = total * np.array(weights) / sum(weights)
    shares = np.floor(exact).astype(np.int64)
    # What is left goes to those that lost most by the rounding.
    order = np.argsort(-(exact - shares), kind="stable")
    shares[order[: total - int(shares.sum())]] += 1
    return shares


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
