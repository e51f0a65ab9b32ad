"""Several sources of which some come more often than others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luong_keras.data.epoch_order import shuffled_places, shuffled_range


class Mixture:
    """Which pairs an epoch takes of each source, by the sources' weights.

    An epoch has as many pairs as all sources together, and of each source its
    share of them. The pairs of a source follow each other in passes: one pass
    has each of them once, in an order of its own, and goes on where the last
    epoch left it. So a source that comes often is repeated evenly, and of
    one that comes seldom every pair comes in the end. All of it is a pure
    function of the seed and the epoch.

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
