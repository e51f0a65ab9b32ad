"""Training batches with random access: each is read independently."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from luong_keras.config.checks import check_choice, check_integers
from luong_keras.data.batch_order import (
    Mixture,
    shuffled_indices,
    sorted_batches,
)
from luong_keras.data.corpus import Corpus
from luong_keras.data.padding import (
    dataset_of_batches,
    padded_batch,
    share_of_batch,
)
from luong_keras.data.token_ids import select_pairs
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.with_tensorflow import tf

_POOL_BATCHES = {"sorted_pools": 64, "authors": 100}


class TrainingBatches:
    """Training batches of all epochs, numbered by the global step.

    An epoch shuffles the whole corpus and divides it into pools of
    `pool_batches * batch_size` pairs. Each pool is sorted by target and source
    length and cut into batches, which are shuffled. The order is a pure
    function of `seed` and the epoch, so the step alone is the position in the
    data: `dataset(start, stop)` may start anywhere and gives the batches of a
    run from step 0. The authors' program has another order: see `batching`.

    Lengths are counted once, at construction, and kept in the corpus's
    folder. All epochs have the same, known number of steps. Pairs that have a
    side without tokens are left out.

    Args:
        corpus: The sentence pairs.
        source_tokenizer: The tokenizer of the source sentences.
        target_tokenizer: The tokenizer of the target sentences.
        batch_size: The number of pairs per batch. If it does not divide the
            pairs, one batch in the last pool of an epoch is smaller.
        seed: The seed of the order, at least 0.
        max_length: The maximum number of tokens per side, without `<s>` and
            `</s>`. The paper drops pairs of more than 50 words.
        over_long: The treatment of longer pairs: `"drop"`; `"truncate"`,
            which keeps the first `max_length` tokens of each side; or
            `"truncate_source_left"`, which keeps the last source tokens
            instead, because a reversing encoder reads the first ones last.
        batching: `"sorted_pools"`, or `"authors"`: each epoch keeps the order
            of the lines, and each pool is sorted by target length only and
            cut into batches that stay sorted.
        pool_batches: The number of batches per pool. Larger pools mean less
            padding and less randomness. By default 64, or 100 with
            `batching="authors"`, as in the authors' program.
        weights: The relative frequency of the pairs of each source of the
            corpus: see `luong_keras.data.batch_order.Mixture`. By default
            each pair occurs once per epoch.

    Attributes:
        dropped: The number of pairs left out because they were too long.
        cut: The number of pairs cut because they were too long.
        empty: The number of pairs left out for a side without tokens.
        pairs: The pairs that are used, and their lengths.

    Raises:
        ValueError: If an argument is out of range, or no pair is left.

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
        check_choice(_POOL_BATCHES, batching=batching)
        if pool_batches is None:
            pool_batches = _POOL_BATCHES[batching]
        if weights is not None and batching == "authors":
            raise ValueError(
                "`weights` mix the lines, and `batching='authors'` takes them "
                "in their order. Received: both. Leave one out."
            )
        check_integers(batch_size=batch_size, pool_batches=pool_batches)
        check_integers(minimum=0, seed=seed)
        pairs = select_pairs(
            corpus, source_tokenizer, target_tokenizer, max_length, over_long
        )
        self.pairs = pairs
        self._mixture = None
        if weights is not None:
            # The last sources may have no pairs in the corpus.
            sizes = corpus.parts + [0] * (len(weights) - len(corpus.parts))
            ends = np.searchsorted(pairs.lines, np.cumsum(sizes))
            counts = np.diff(ends, prepend=0).tolist()
            self._mixture = Mixture(counts, weights, seed)
        self.corpus = corpus
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.batch_size = batch_size
        self.seed = seed
        self.max_length = max_length
        self.over_long = over_long
        self.batching = batching
        self.pool_batches = pool_batches
        self.dropped = pairs.dropped
        self.cut = pairs.cut
        self.empty = pairs.empty

    @property
    def pairs_per_epoch(self) -> int:
        """The number of pairs per epoch."""
        return len(self.pairs.lines)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches per epoch."""
        return -(-len(self.pairs.lines) // self.batch_size)

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
        start = pool * self.pool_batches * self.batch_size
        count = len(self.pairs.lines)
        stop = min(start + self.pool_batches * self.batch_size, count)
        keys = [self.pairs.target_lengths]
        if self.batching == "authors":
            lines = self.pairs.lines[start:stop]
            return sorted_batches(lines, keys, self.batch_size)
        if self._mixture is not None:
            positions = self._mixture.pairs(start, stop, epoch)
        else:
            positions = shuffled_indices(
                np.arange(start, stop), count, (self.seed, epoch)
            )
        keys.append(self.pairs.source_lengths)
        batches = sorted_batches(
            self.pairs.lines[positions], keys, self.batch_size
        )
        # The seeds of epochs are not negative, so the two never coincide.
        seed = (-1 - self.seed, epoch * self.pools_per_epoch + pool)
        order = shuffled_indices(np.arange(len(batches)), len(batches), seed)
        return [batches[index] for index in order]

    def lines(self, step: int) -> np.ndarray:
        """Compute the lines of the corpus in the batch of a step.

        Args:
            step: The global step, from 0.

        Returns:
            (B,) line numbers, from 0.
        """
        return next(self._lines_from(step))

    def _lines_from(self, step: int) -> Iterator[np.ndarray]:
        """Yield the lines of the batch of a step and of all later ones."""
        while True:
            epoch, index = divmod(step, self.steps_per_epoch)
            pool, index = divmod(index, self.pool_batches)
            batches = self.pool_lines(epoch, pool)[index:]
            yield from batches
            step += len(batches)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines the batches."""
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
        """Return the batches of a range of steps, or one process's rows.

        Reaching the first batch costs at most one pool, wherever it is. The
        batches do not depend on the number of processes. Each process reads
        all lines of a batch, so the processes need not communicate.

        Args:
            start_step: The first global step, from 0.
            stop_step: The step after the last one; in any later epoch.
            rank: The number of the process, from 0.
            world: The number of processes.
            row_multiple: The rows of the whole batch are padded to a multiple
                of this number, such as the number of devices; `world` when
                None. The added rows hold only padding.
            widths: The numbers of columns to choose from, in ascending order,
                such as `luong_keras.data.padding.WIDTHS`, for a compiler that
                compiles one program per shape. By default a batch is as wide
                as its longest sentence.

        Returns:
            A dataset of `stop_step - start_step` dicts of int32 tensors,
            padded on the right with `<pad>`: `source` (B, S), `target_in`
            (B, T) with `<s>` in front, `target_out` (B, T) with `</s>` at the
            end.

        Raises:
            ValueError: If the steps are not in order, or the rank or the row
                multiple is out of range.
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
        steps = stop_step - start_step
        return dataset_of_batches(
            lambda: (
                share_of_batch(self._read_batch(lines), *share)
                for lines in itertools.islice(
                    self._lines_from(start_step), steps
                )
            ),
            ("source", "target_in", "target_out"),
            steps,
        ).prefetch(8)

    def _read_batch(self, lines: np.ndarray) -> dict[str, np.ndarray]:
        """Read the arrays of a batch from its lines of the corpus."""
        keep_end = self.over_long == "truncate_source_left"
        return padded_batch(
            self.pairs.source.rows(lines, self.max_length, keep_end),
            self.pairs.target.rows(lines, self.max_length),
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
