"""Rows of ids to padded batches, and these to the rows of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID
from luong_keras.with_tensorflow import tf


def _widths(ratio: float) -> Iterator[int]:
    width = 8
    while width < 10_000:
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


def padded(rows: Sequence[Sequence[int]], least: int = 0) -> np.ndarray:
    """Pads rows of ids on the right to the longest of them.

    Args:
        rows: Ids of each row, B of them.
        least: The least number of columns.

    Returns:
        Ids (B, N), int32.

    Example:
        >>> padded([[4, 5], [6]])
        array([[4, 5],
               [6, 0]], dtype=int32)
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = max(least, int(lengths.max()))
    ids = np.full((len(rows), width), PAD_ID, np.int32)
    ids[np.arange(width) < lengths[:, np.newaxis]] = np.concatenate(rows)
    return ids


def padded_batch(
    source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]
) -> dict[str, np.ndarray]:
    """Pads ids and adds `<s>` and `</s>` to the target.

    Args:
        source: Ids of B sentences.
        target: Ids of their translations.

    Returns:
        The arrays that `TrainingBatches.dataset` describes.
    """
    ids = padded(target)
    target_in = np.pad(ids, [(0, 0), (1, 0)], constant_values=BOS_ID)
    target_out = np.pad(ids, [(0, 0), (0, 1)], constant_values=PAD_ID)
    target_out[np.arange(len(ids)), list(map(len, target))] = EOS_ID
    return {
        "source": padded(source, least=1),
        "target_in": target_in,
        "target_out": target_out,
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
    batch: dict[str, np.ndarray],
    rank: int = 0,
    world: int = 1,
    row_multiple: int = 1,
    widths: Sequence[int] = (),
) -> dict[str, np.ndarray]:
    """Pads a batch and takes the rows of one process.

    Args:
        batch: Ids (B, S), `<pad>` after each row.
        rank: The process, from 0.
        world: How many processes there are.
        row_multiple: What the number of rows is to be divisible by, a
            multiple of `world`. The rows that are added hold no word.
        widths: What the columns are padded to, see `padded_width`.

    Returns:
        The rows `[rank * n, (rank + 1) * n)`, n of each process.
    """

    def share(ids: np.ndarray) -> np.ndarray:
        rows, width = ids.shape
        more = (-rows % row_multiple, int(padded_width(width, widths)) - width)
        ids = np.pad(ids, [(0, n) for n in more], constant_values=PAD_ID)
        own = len(ids) // world
        return ids[rank * own : (rank + 1) * own]

    return {name: share(ids) for name, ids in batch.items()}


def dataset_of_batches(
    batches: Callable[[], Iterable[dict[str, np.ndarray]]],
    names: Sequence[str],
    count: int,
) -> tf.data.Dataset:
    """Hands batches to `fit` as a dataset.

    Args:
        batches: Gives them from the first one, dicts of int32 matrices.
        names: Their keys.
        count: How many there are.
    """
    signature = tf.TensorSpec([None, None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        batches, output_signature=dict.fromkeys(names, signature)
    )
    return dataset.apply(tf.data.experimental.assert_cardinality(count))
