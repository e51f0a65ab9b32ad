"""Batches for decoding and scoring, in order of length."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from luong_keras.config.checks import check_integers
from luong_keras.data.batch_order import sorted_batches
from luong_keras.data.padding import (
    dataset_of_batches,
    pad_rows,
    padded_batch,
    share_of_batch,
)
from luong_keras.text.tokenizer import Tokenizer, map_lines
from luong_keras.with_tensorflow import tf


class EvaluationBatches:
    """Batches of sentences of similar length, longest first.

    Each sentence is in one batch. Iterating yields dicts of arrays: `indices`
    (B,), int64, the indices of the sentences in `sources`; `source` (B, S),
    int32, padded on the right to at least one column, even if all sentences
    are empty; and, with `targets`, `target_in` and `target_out` (B, T) as in
    `TrainingBatches`.

    Args:
        sources: The source sentences.
        source_tokenizer: The tokenizer of the sources.
        batch_size: The number of sentences per batch.
        max_length: The maximum number of tokens per side; longer sides are
            cut.
        targets: The translations to score, or None.
        target_tokenizer: The tokenizer of the targets.

    Attributes:
        cut: The number of sentences, or pairs, that were cut.

    Raises:
        ValueError: If an argument is out of range or missing.

    Example:
        >>> from luong_keras.text.word_tokenizer import WordTokenizer
        >>> tokenizer = WordTokenizer.from_words(["a", "b"])
        >>> batches = EvaluationBatches(["a", "b a", "b"], tokenizer, 2, 50)
        >>> for batch in batches:
        ...     print(batch["indices"], batch["source"].tolist())
        [1 0] [[5, 4], [4, 0]]
        [2] [[5]]
    """

    def __init__(
        self,
        sources: Sequence[str],
        source_tokenizer: Tokenizer,
        batch_size: int,
        max_length: int,
        targets: Sequence[str] | None = None,
        target_tokenizer: Tokenizer | None = None,
    ) -> None:
        check_integers(batch_size=batch_size, max_length=max_length)
        if (targets is None) != (target_tokenizer is None):
            argument = "target_tokenizer" if targets is None else "targets"
            raise ValueError(
                "`targets` and `target_tokenizer` go together. Received: only "
                f"`{argument}`."
            )
        if targets is not None and len(targets) != len(sources):
            raise ValueError(
                "`targets` must have one sentence for each of `sources`. "
                f"Received: {len(targets)} and {len(sources)}."
            )
        sides = [_encode_lines(sources, source_tokenizer)]
        if targets is not None and target_tokenizer is not None:
            sides.append(_encode_lines(targets, target_tokenizer))
        lengths = np.array([[len(ids) for ids in side] for side in sides])
        self.cut = int((lengths > max_length).any(0).sum())
        self._sides = [[ids[:max_length] for ids in side] for side in sides]
        # With targets, their length counts first, as in training.
        keys = -np.minimum(lengths, max_length)[::-1]
        self._batches = sorted_batches(
            np.arange(len(sources)), list(keys), batch_size
        )

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """Iterate over the batches.

        Yields:
            The arrays of one batch.
        """
        for indices in self._batches:
            sides = [[side[i] for i in indices] for side in self._sides]
            if len(sides) == 2:
                batch = padded_batch(*sides)
            else:
                batch = {"source": pad_rows(sides[0], min_width=1)}
            yield {"indices": indices, **batch}

    def dataset(self, **share: Any) -> tf.data.Dataset:
        """Return the batches, without `indices`, as a dataset.

        Args:
            **share: The arguments of `TrainingBatches.dataset` that select
                the rows of a process and their padding.
        """
        names = ["source", "target_in", "target_out"]
        names = names if len(self._sides) == 2 else names[:1]
        return dataset_of_batches(
            lambda: (
                share_of_batch({name: batch[name] for name in names}, **share)
                for batch in self
            ),
            names,
            len(self),
        )


def _encode_lines(
    lines: Sequence[str], tokenizer: Tokenizer
) -> list[list[int]]:
    batches = map_lines(tokenizer.encode, lines)
    return [ids for batch in batches for ids in batch.to_list()]
