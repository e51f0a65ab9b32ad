"""Operations that some backends of Keras lack: float64, dropout, rows."""

import keras
from keras import backend, ops

from luong_keras.missing_package import private_name


def enable_float64(enabled: bool = True) -> None:
    """Lets `dtype="float64"` mean float64 on JAX and torch.

    Keras 3.15 casts the operands of most of its operations to what a table of
    its own names, float32 for float64, and has no setting: the table is
    changed. JAX itself has a public setting for it, which is set here as well.
    On TensorFlow float64 is what it says and nothing is done.

    Call it before layers are made.

    Args:
        enabled: False puts both back.

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
    """Raises where a layer of float64 would compute in float32.

    Args:
        layer: a Keras layer, its dtype policy set.
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
    """`keras.random.dropout`, drawn from the generator on every backend.

    On torch Keras asks torch's own generator, which no snapshot has, unless
    the generator was made of a number or a shape is given.

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


def rows(table, places):
    """The rows of `table` (V, E) at `places` (...), int: (..., E).

    `keras.ops.take` reads a variable as a whole: on TensorFlow that is a copy
    of it, once an optimizer has changed only some of its rows.
    """
    if backend.backend() != "tensorflow":
        return ops.take(table, places, axis=0)
    import tensorflow as tf

    value = table.value if isinstance(table, keras.Variable) else table
    return tf.gather(value, places)


def sum_equal_rows(slices):
    """The rows of TensorFlow's `IndexedSlices`, equal indices added up.

    The result is (N, ...) as the slices are: a row for each different index,
    and zeros after these. XLA finds the indices of `tf.unique` in a loop over
    all of them, one at a time.
    """
    import tensorflow as tf

    order = tf.cast(tf.argsort(slices.indices, stable=True), "int64")
    indices = tf.gather(slices.indices, order)
    changes = tf.cast(indices[1:] != indices[:-1], "int64")
    places = tf.concat([tf.zeros([1], "int64"), tf.cumsum(changes)], 0)
    number = tf.size(order, tf.int64)
    places = tf.scatter_nd(order[:, None], places[:number], [number])
    return tf.math.unsorted_segment_sum(slices.values, places, number)
