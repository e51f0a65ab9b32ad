"""Padding of batches, and the rows of a batch that a process gets."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID
from luong_keras.with_tensorflow import tf


def _growing_widths(ratio: float) -> Iterator[int]:
    width = 8
    while width < 10_000:
        yield width
        width = max(width + 4, round(ratio * width / 4) * 4)
    yield width


# The widths of padded batches for a compiler that compiles one program per
# shape. `benchmarks/padding.py` measures the cost of other widths: these widths
# reduce the two hundred shapes of an epoch to two dozen programs, and increase
# the share of padding by 6 to 11 percentage points.
WIDTHS = tuple(_growing_widths(1.3))
# For rare computations, such as the validation between epochs.
FEW_WIDTHS = tuple(_growing_widths(2.0))


Row = Sequence[int] | np.ndarray


def pad_rows(rows: Sequence[Row], min_width: int = 0) -> np.ndarray:
    """Pad rows of ids on the right to the length of the longest row.

    Args:
        rows: B rows of ids.
        min_width: The minimum number of columns.

    Returns:
        (B, N) int32 array of ids.

    Example:
        >>> pad_rows([[4, 5], [6]])
        array([[4, 5],
               [6, 0]], dtype=int32)
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = max(min_width, int(lengths.max()))
    ids = np.full((len(rows), width), PAD_ID, np.int32)
    ids[np.arange(width) < lengths[:, np.newaxis]] = np.concatenate(rows)
    return ids


def padded_batch(
    source: Sequence[Row], target: Sequence[Row]
) -> dict[str, np.ndarray]:
    """Pad ids and add `<s>` and `</s>` to the target.

    Args:
        source: The ids of B sentences.
        target: The ids of their translations.

    Returns:
        The arrays that `TrainingBatches.dataset` describes.
    """
    ids = pad_rows(target)
    target_in = np.pad(ids, [(0, 0), (1, 0)], constant_values=BOS_ID)
    target_out = np.pad(ids, [(0, 0), (0, 1)], constant_values=PAD_ID)
    target_out[np.arange(len(ids)), list(map(len, target))] = EOS_ID
    return {
        "source": pad_rows(source, min_width=1),
        "target_in": target_in,
        "target_out": target_out,
    }


def padded_width(length: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """Return the widths to which batches are padded.

    Args:
        length: Integer array of any shape, the longest row of each batch.
        widths: The widths to choose from, in ascending order; any width is
            possible if empty.

    Returns:
        The smallest sufficient width; the length itself if no width suffices.

    Example:
        >>> padded_width(np.array([3, 9, 40]), (8, 12, 16))
        array([ 8, 12, 40])
    """
    index = np.searchsorted(widths, length)
    # The last one stands for lengths that no width covers.
    covering_widths = np.array([*widths, 0])[index]
    return np.maximum(covering_widths, length)


def share_of_batch(
    batch: dict[str, np.ndarray],
    rank: int = 0,
    world: int = 1,
    row_multiple: int = 1,
    widths: Sequence[int] = (),
) -> dict[str, np.ndarray]:
    """Pad a batch and return the rows of one process.

    Args:
        batch: (B, S) arrays of ids, padded on the right.
        rank: The number of the process, from 0.
        world: The number of processes.
        row_multiple: The rows are padded to a multiple of this number, itself
            a multiple of `world`. The added rows hold only padding.
        widths: The widths to choose from; see `padded_width`.

    Returns:
        The rows `[rank * n, (rank + 1) * n)`, where each process has n rows.
    """

    def share(ids: np.ndarray) -> np.ndarray:
        rows, width = ids.shape
        padding = (
            -rows % row_multiple,
            int(padded_width(width, widths)) - width,
        )
        ids = np.pad(ids, [(0, n) for n in padding], constant_values=PAD_ID)
        row_count = len(ids) // world
        return ids[rank * row_count : (rank + 1) * row_count]

    return {name: share(ids) for name, ids in batch.items()}


def dataset_of_batches(
    batches: Callable[[], Iterable[dict[str, np.ndarray]]],
    names: Sequence[str],
    count: int,
) -> tf.data.Dataset:
    """Return batches as a dataset for `fit`.

    Args:
        batches: A function that returns an iterable over all batches, dicts of
            int32 matrices.
        names: The keys of the dicts.
        count: The number of batches.
    """
    signature = tf.TensorSpec([None, None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        batches, output_signature=dict.fromkeys(names, signature)
    )
    return dataset.apply(tf.data.experimental.assert_cardinality(count))
