"""Operations that some backends of Keras lack: float64, dropout, rows."""

import keras
from keras import backend, ops

from luong_keras.missing_package import private_name
from luong_keras.ops.masking import INDEX_DTYPE, all_indices


def enable_float64(enabled: bool = True) -> None:
    """Make `dtype="float64"` mean float64 on JAX and torch.

    Keras 3.15 casts the operands of most operations by an internal table,
    which maps float64 to float32. It has no setting for this, so the table is
    changed. The public setting of JAX is changed, too. On TensorFlow float64
    means float64 already, and nothing is done.

    Call it before layers are made.

    Args:
        enabled: Whether to compute in float64; False restores float32.

    Example:
        >>> enable_float64()
        >>> backend.result_type("float64", "float64")
        'float64'
        >>> enable_float64(False)
    """
    if backend.backend() == "tensorflow":
        return
    table = private_name(
        "keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE",
        instead="Or compute in float64 on the TensorFlow backend.",
    )
    if backend.backend() == "jax":
        import jax

        jax.config.update("jax_enable_x64", enabled)
    table["float64"] = "float64" if enabled else "float32"


def check_float64(layer) -> None:
    """Check that a layer of float64 does not compute in float32.

    Args:
        layer: A Keras layer with its dtype policy.
    """
    if layer.compute_dtype == "float64" and (
        backend.result_type("float64", "float64") != "float64"
    ):
        raise ValueError(
            f"`dtype='float64'` of {type(layer).__name__} would be rounded: "
            f"Keras computes in float32 on {backend.backend()}. Call "
            "`luong_keras.enable_float64()` first, use the TensorFlow "
            "backend, or another dtype."
        )


def dropout(x, rate, seed_generator, noise_shape=None):
    """Apply dropout with masks drawn from the generator on each backend.

    On torch `keras.random.dropout` uses torch's generator, which all models
    share, unless the seed generator was made from a number or a noise shape is
    given.

    Example:
        >>> from keras.random import SeedGenerator
        >>> dropout(ops.ones((2, 3)), 0.5, SeedGenerator()).shape[1]
        3
    """
    if noise_shape is None and backend.backend() == "torch":
        noise_shape = ops.shape(x)
    return keras.random.dropout(
        x, rate, noise_shape=noise_shape, seed=seed_generator
    )


def rows(table, indices):
    """Return the rows of `table` (V, ...) at `indices` (...): (..., ...).

    `indices` are integers from 0. `keras.ops.take` reads the whole variable:
    TensorFlow copies it once an optimizer has changed only some of its rows.
    """
    if backend.backend() != "tensorflow":
        return ops.take(table, indices, axis=0)
    import tensorflow as tf

    value = table.value if isinstance(table, keras.Variable) else table
    return tf.gather(value, indices)


def rows_of_each(x, indices):
    """Return the rows of each `x` (B, S, ...) at its `indices` (B, ...).

    Whole rows are gathered; on TensorFlow `keras.ops.take_along_axis` would
    gather number by number, and needs tens of operations.

    Example:
        >>> import numpy as np
        >>> result = rows_of_each(np.arange(6).reshape(2, 3), [[2, 0], [1, 1]])
        >>> np.array(result).tolist()
        [[2, 0], [4, 4]]
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(x, indices, batch_dims=1)
    batch, count, *sizes = ops.shape(x)
    # A size of -1 is undefined beside an empty axis.
    flat = ops.reshape(x, (batch * count, *sizes))
    indices = ops.cast(indices, INDEX_DTYPE)
    first = all_indices(batch) * ops.cast(count, INDEX_DTYPE)
    first = ops.reshape(first, (-1, *[1] * (len(indices.shape) - 1)))
    return rows(flat, indices + first)


def take_last(x, indices):
    """Compute `keras.ops.take_along_axis` along the last axis.

    `x` (..., N) and `indices` (..., M) have the same leading axes. TensorFlow
    needs one operation, and not the tens of `keras.ops.take_along_axis`.
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(x, indices, batch_dims=len(x.shape) - 1)
    return ops.take_along_axis(x, indices, axis=-1)


def sum_equal_rows(slices):
    """Add up the rows of `tf.IndexedSlices` that have equal indices.

    The result has as many rows: one per distinct index, then zeros at index 0.
    It avoids `tf.unique`, which XLA runs as a loop over all indices, one at a
    time.
    """
    import tensorflow as tf

    order = tf.cast(tf.argsort(slices.indices, stable=True), "int64")
    indices = tf.gather(slices.indices, order)
    changes = tf.cast(indices[1:] != indices[:-1], "int64")
    segment_ids = tf.concat([tf.zeros([1], "int64"), tf.cumsum(changes)], 0)
    count = tf.size(order, tf.int64)
    segment_ids = tf.scatter_nd(order[:, None], segment_ids[:count], [count])
    return tf.IndexedSlices(
        tf.math.unsorted_segment_sum(slices.values, segment_ids, count),
        tf.tensor_scatter_nd_update(
            tf.zeros_like(slices.indices),
            segment_ids[:, None],
            slices.indices,
        ),
        slices.dense_shape,
    )
