import numpy as np
import pytest
from keras import ops
from keras.random import SeedGenerator

from luong_keras.ops.backends import (
    dropout,
    rows_of_each,
    sum_equal_rows,
    take_last,
)
from tests.layer_checks import random


def test_dropout_depends_only_on_the_seed_state():
    one, other = SeedGenerator(), SeedGenerator()
    other.state.assign(one.state)
    x = ops.ones((30, 40))
    first, second = (np.array(dropout(x, 0.5, one)) for _ in range(2))
    np.testing.assert_array_equal(dropout(x, 0.5, other), first)
    assert (first != second).any()
    assert set(first.ravel()) == {0.0, 2.0}


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (0,)])
def test_rows_of_each_are_those_of_numpy(sizes):
    x = random(2, 4, *sizes).astype("float32")
    places = np.array([[3, 0, 3], [1, 1, 2]], "int32")
    found = rows_of_each(ops.convert_to_tensor(x), places)
    expected = x[np.arange(2)[:, None], places]
    np.testing.assert_array_equal(np.array(found), expected)


def test_values_along_the_last_axis_are_those_of_numpy():
    x = random(2, 3, 5).astype("float32")
    places = np.random.default_rng(0).integers(0, 5, (2, 3, 4))
    found = take_last(ops.convert_to_tensor(x), ops.convert_to_tensor(places))
    expected = np.take_along_axis(x, places, axis=-1)
    np.testing.assert_array_equal(np.array(found), expected)


def squares(values, indices):
    import tensorflow as tf

    slices = tf.IndexedSlices(values, indices, tf.constant([9, 3]))
    return tf.reduce_sum(tf.square(sum_equal_rows(slices)))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "indices", [[], [4], [4, 4], [8, 1, 4, 1, 8, 8], [0, 1, 2, 3, 4, 5, 6]]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_rows_with_equal_indices_are_summed(indices, compiled):
    import tensorflow as tf

    values = random(len(indices), 3)
    dense = np.zeros((9, 3))
    np.add.at(dense, np.array(indices, "int64"), values)
    found = tf.function(squares, jit_compile=compiled)(
        tf.constant(values), tf.constant(indices, "int32")
    )
    np.testing.assert_allclose(found, np.square(dense).sum(), rtol=1e-5)


@pytest.mark.tensorflow
def test_xla_sums_equal_rows_without_a_loop():
    """In a loop, a GPU would start several operations per word."""
    import tensorflow as tf

    program = tf.function(squares, jit_compile=True)
    arguments = tf.zeros((5, 3)), tf.constant([1, 2, 1, 2, 1])
    text = program.experimental_get_compiler_ir(*arguments)(stage="hlo")
    assert "while(" not in text
