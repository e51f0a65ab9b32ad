"""Which lines of a corpus make a batch: a pure function of the step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luong_keras.data.epoch_order import (
    pool_batches as batches_of_lines,
)
from luong_keras.data.epoch_order import (
    shuffled_range,
    sorted_batches,
)
from luong_keras.data.mixture import Mixture
from luong_keras.data.padding import padded_width
from luong_keras.data.token_ids import PairSelection

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
        return batches_of_lines(
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
