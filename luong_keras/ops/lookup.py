"""Rows of a variable, and their gradients, without the rest of it."""

import keras
from keras import backend, ops


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

    The result is (R, ...), a row for each of R different indices.
    """
    import tensorflow as tf

    found, places = tf.unique(slices.indices)
    return tf.math.unsorted_segment_sum(slices.values, places, tf.size(found))
