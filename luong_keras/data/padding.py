"""Ragged ids to padded batches, and these to what a process reads of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from luong_keras.missing_package import missing_package
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


def _widths(ratio: float, longest: int = 10_000) -> Iterator[int]:
    width = 8
    while width < longest:
        yield width
        width = max(width + 4, round(ratio * width / 4) * 4)
    yield width


# The widths that batches are padded to for a compiler that takes each shape
# for another program. `benchmarks/padding.py` measures what others cost: these
# make two dozen programs of an epoch of two hundred shapes, and 6 to 11 more
# cells of a hundred are padding.
WIDTHS = tuple(_widths(1.3))
# For what is computed seldom, as translations between epochs.
FEW_WIDTHS = tuple(_widths(2.0))


def cut_tokens(
    ids: tf.RaggedTensor, max_length: int, keep_end: bool = False
) -> tf.RaggedTensor:
    """Cuts sentences to a number of tokens.

    Args:
        ids: Ids (n, None).
        max_length: The most tokens that are left of a sentence.
        keep_end: Whether the first tokens go instead of the last.

    Returns:
        The ids that are left.
    """
    return ids[:, -max_length:] if keep_end else ids[:, :max_length]


def batches_of_pool(
    source: tf.RaggedTensor, target: tf.RaggedTensor, splits: tf.Tensor
) -> tf.data.Dataset:
    """Cuts a pool into batches and pads each to its own longest row.

    Args:
        source: Ids (n, None).
        target: Ids (n, None).
        splits: The rows at which to cut, from 0 to n, int64.

    Returns:
        A dataset of what `padded_batch` returns.
    """

    def batch(index: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = slice(splits[index], splits[index + 1])
        return padded_batch(source[rows], target[rows])

    steps = tf.size(splits, out_type=tf.int64) - 1
    return tf.data.Dataset.range(steps).map(batch)


def padded_batch(
    source: tf.RaggedTensor, target: tf.RaggedTensor
) -> dict[str, tf.Tensor]:
    """Pads ids and adds `<s>` and `</s>` to the target.

    Args:
        source: Ids (B, None).
        target: Ids (B, None).

    Returns:
        The tensors that `TrainingBatches.dataset` describes.
    """
    column = tf.ones_like(target[:, :1].to_tensor(shape=[None, 1]))
    return {
        "source": source.to_tensor(PAD_ID),
        "target_in": tf.concat([BOS_ID * column, target], 1).to_tensor(PAD_ID),
        "target_out": tf.concat([target, EOS_ID * column], 1).to_tensor(PAD_ID),
    }


def padded_width(length: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """The widths that batches are padded to.

    Args:
        length: The longest row of each batch, of any shape.
        widths: Those to choose from, in ascending order; none for any.

    Returns:
        The least width that is enough; the length itself where none is.

    Example:
        >>> padded_width(np.array([3, 9, 40]), (8, 12, 16))
        array([ 8, 12, 40])
    """
    if not len(widths):
        return np.asarray(length)
    place = np.searchsorted(widths, length)
    enough = place < len(widths)
    known = np.asarray(widths)[np.where(enough, place, 0)]
    return np.where(enough, known, length)


def share_of_batch(
    batch: dict[str, tf.Tensor],
    rank: int = 0,
    world: int = 1,
    row_multiple: int = 1,
    widths: Sequence[int] = (),
) -> dict[str, tf.Tensor]:
    """Pads a batch and takes the rows of one process.

    Args:
        batch: Ids (B, S), `<pad>` behind each row.
        rank: The process, from 0.
        world: How many processes there are.
        row_multiple: What the number of rows is to be divisible by, a
            multiple of `world`. The rows that are added hold no word.
        widths: What the columns are padded to, see `padded_width`.

    Returns:
        The rows `[rank * n, (rank + 1) * n)`, n of each process.
    """

    def share(ids: tf.Tensor) -> tf.Tensor:
        rows, width = tf.unstack(tf.shape(ids))
        missing = -rows % row_multiple
        wide = width  # As `padded_width` chooses, in the graph.
        for choice in reversed(widths):
            wide = tf.where(width <= choice, choice, wide)
        ids = tf.pad(
            ids, [[0, missing], [0, wide - width]], constant_values=PAD_ID
        )
        own = (rows + missing) // world
        return ids[rank * own : (rank + 1) * own]

    return {name: share(ids) for name, ids in batch.items()}
