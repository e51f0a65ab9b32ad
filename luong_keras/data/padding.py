"""Ragged ids to padded batches."""

from __future__ import annotations

from luong_keras.missing_package import missing_package
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


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


def padded_rows(
    batch: dict[str, tf.Tensor], multiple: int
) -> dict[str, tf.Tensor]:
    """Adds rows of padding, so that several devices get equal shares.

    Args:
        batch: Ids (B, …), each with the same B.
        multiple: What the number of rows shall be a multiple of.

    Returns:
        The batch, with as few rows of `<pad>` at its end as will do.

    Example:
        >>> batch = {"source": tf.constant([[5, 6], [7, 0], [8, 9]])}
        >>> padded_rows(batch, 2)["source"].numpy().tolist()
        [[5, 6], [7, 0], [8, 9], [0, 0]]
    """

    def padded(ids: tf.Tensor) -> tf.Tensor:
        missing = -tf.shape(ids)[0] % multiple
        others = [[0, 0]] * (ids.shape.rank - 1)
        return tf.pad(ids, [[0, missing], *others], constant_values=PAD_ID)

    return {name: padded(ids) for name, ids in batch.items()}
