"""Batches for training, of which any one can be read without the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from luong_keras.data.batch_order import BatchOrder, Mixture
from luong_keras.data.corpus import Corpus
from luong_keras.data.padding import (
    dataset_of_batches,
    padded_batch,
    share_of_batch,
)
from luong_keras.data.token_ids import select_pairs
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.with_tensorflow import tf


class TrainingBatches(BatchOrder):
    """The batches of all epochs, numbered by the global step.

    An epoch shuffles the whole corpus. Each `pool_batches * batch_size` pairs
    in a row are sorted by target and source length and cut into batches,
    which are shuffled. This is a pure function of `seed` and the epoch, so
    the position in the data is one integer, the step: `dataset(start, stop)`
    starts anywhere and gives the batches a run from step 0 would have had.
    The authors' program has an order of its own, see `batching`.

    Lengths are counted once, at construction, and kept in the corpus's
    folder; so the number of steps of an epoch is known and the same for all.
    Pairs with a side of no tokens are left out.

    Args:
        corpus: The sentence pairs.
        source_tokenizer: Turns source sentences into ids.
        target_tokenizer: Turns target sentences into ids.
        batch_size: Pairs a batch. Only an epoch's last pool has one smaller
            batch, where the pairs do not divide.
        seed: A number from 0; another one gives other orders.
        max_length: The most tokens of a side, `<s>` and `</s>` not counted.
            The paper drops pairs of more than 50 words.
        over_long: What to do with a longer pair: `"drop"` it, or `"truncate"`
            each side after `max_length` tokens; or `"truncate_source_left"`,
            which cuts the target so and of the source its first tokens: what an
            encoder that reads in reverse would read last.
        batching: `"sorted_pools"`, or `"authors"`: every epoch takes the
            lines in their order, and each pool is sorted by target length
            alone and cut into batches that stay sorted.
        pool_batches: Batches a pool; more give less padding and less
            randomness. 64 when None, and 100, as in the authors' program,
            for its batching.
        weights: How often the pairs of each of the corpus's sources come,
            relative to the others: see `luong_keras.data.batch_order.Mixture`.
            Every pair comes once an epoch when None.

    Attributes:
        dropped: How many pairs were too long and left out.
        cut: How many pairs were too long and are cut.
        empty: How many pairs were left out for a side of no tokens.

    Raises:
        ValueError: An argument is out of its range, or no pair is left.

    Example:
        >>> import tempfile
        >>> from luong_keras.data.corpus_writer import write_corpus
        >>> from luong_keras.text.word_tokenizer import WordTokenizer
        >>> pairs = [("a b", "x"), ("a", "y x"), ("b b b", "x y x")]
        >>> corpus = write_corpus(pairs, tempfile.mkdtemp())
        >>> batches = TrainingBatches(
        ...     corpus,
        ...     WordTokenizer.from_words(["a", "b"]),
        ...     WordTokenizer.from_words(["x", "y"]),
        ...     batch_size=2,
        ...     seed=1,
        ...     max_length=50,
        ... )
        >>> batches.steps_per_epoch
        2
        >>> for batch in batches.dataset(1, 2):
        ...     print({name: tuple(x.shape) for name, x in batch.items()})
        {'source': (2, 2), 'target_in': (2, 3), 'target_out': (2, 3)}
    """

    def __init__(
        self,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        batch_size: int,
        seed: int,
        max_length: int,
        over_long: str = "drop",
        batching: str = "sorted_pools",
        pool_batches: int | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        pairs = select_pairs(
            corpus, source_tokenizer, target_tokenizer, max_length, over_long
        )
        mixture = None
        if weights is not None:
            # Of the last sources no pair may be left.
            sizes = corpus.parts + [0] * (len(weights) - len(corpus.parts))
            ends = np.searchsorted(pairs.lines, np.cumsum(sizes))
            counts = np.diff(ends, prepend=0).tolist()
            mixture = Mixture(counts, weights, seed)
        super().__init__(
            pairs, batch_size, seed, batching, pool_batches, mixture
        )
        self.corpus = corpus
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.max_length = max_length
        self.over_long = over_long
        self.dropped = self._pairs.dropped
        self.cut = self._pairs.cut
        self.empty = self._pairs.empty

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides the batches, to check at a resume."""
        parts: dict[str, Any] = {
            "corpus": self.corpus.fingerprint,
            "source": self.source_tokenizer.fingerprint,
            "target": self.target_tokenizer.fingerprint,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "max_length": self.max_length,
            "over_long": self.over_long,
            "batching": self.batching,
            "pool_batches": self.pool_batches,
        }
        if self._mixture is not None:
            parts["weights"] = self._mixture.weights
            parts["sources"] = self._mixture.counts.tolist()
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def dataset(
        self,
        start_step: int,
        stop_step: int,
        rank: int = 0,
        world: int = 1,
        row_multiple: int | None = None,
        widths: Sequence[int] = (),
    ) -> tf.data.Dataset:
        """Makes the batches of some steps, or one process's rows of them.

        The first batch costs at most one pool, wherever it is. The batches
        are the same however many processes there are; each reads all lines
        of them, so nothing has to be agreed.

        Args:
            start_step: The first global step, from 0.
            stop_step: The step after the last one; in any later epoch.
            rank: The process, from 0.
            world: How many processes there are.
            row_multiple: What the number of rows of the whole batch is padded
                to a multiple of, `world` where None; for the number of
                devices. The rows that are added hold no word.
            widths: What the numbers of columns are chosen from, in ascending
                order, for a compiler that takes a new shape for a new
                program: `luong_keras.data.padding.WIDTHS`. By default the
                longest sentence of the batch decides.

        Returns:
            A dataset of `stop_step - start_step` dicts of int32 tensors,
            padded on the right with `<pad>`: `source` (B, S), `target_in`
            (B, T) with `<s>` in front, `target_out` (B, T) with `</s>` at the
            end.

        Raises:
            ValueError: The steps are not in order, or there is no such rank.
        """
        if row_multiple is None:
            row_multiple = world
        _check_share(rank, world, row_multiple)
        if not 0 <= start_step <= stop_step:
            raise ValueError(
                "Steps must be 0 <= start_step <= stop_step. Received: "
                f"start_step={start_step}, stop_step={stop_step}."
            )

        share = (rank, world, row_multiple, tuple(widths))
        return dataset_of_batches(
            lambda: (
                share_of_batch(batch, *share)
                for batch in self._batches(start_step, stop_step)
            ),
            ("source", "target_in", "target_out"),
            stop_step - start_step,
        ).prefetch(8)

    def _batches(self, start: int, stop: int) -> Iterator[dict]:
        """Reads the batches of some steps."""
        step = start
        while step < stop:
            epoch, place = divmod(step, self.steps_per_epoch)
            pool, place = divmod(place, self.pool_batches)
            for lines in self.pool_lines(epoch, pool)[place:]:
                if step < stop:
                    yield padded_batch(*self._rows(lines))
                step += 1

    def _rows(self, lines: np.ndarray) -> tuple[Sequence, Sequence]:
        """The ids of both sides of a batch, without `<s>` and `</s>`."""
        keep_end = self.over_long == "truncate_source_left"
        return (
            self._pairs.source.rows(lines, self.max_length, keep_end),
            self._pairs.target.rows(lines, self.max_length),
        )


def _check_share(rank: int, world: int, row_multiple: int) -> None:
    if not 0 <= rank < world:
        raise ValueError(
            "`rank` must be from 0 to world - 1. Received: "
            f"rank={rank}, world={world}."
        )
    if row_multiple < 1 or row_multiple % world:
        raise ValueError(
            "`row_multiple` must be a multiple of `world`. Received: "
            f"row_multiple={row_multiple}, world={world}."
        )
