import numpy as np
from keras import ops
from keras.random import SeedGenerator

from luong_keras.ops.backends import dropout


def test_what_is_dropped_is_a_function_of_the_seeds_state():
    one, other = SeedGenerator(), SeedGenerator()
    other.state.assign(one.state)
    x = ops.ones((30, 40))
    first, then = (np.array(dropout(x, 0.5, one)) for _ in range(2))
    np.testing.assert_array_equal(dropout(x, 0.5, other), first)
    assert (first != then).any()
    assert set(first.ravel()) == {0.0, 2.0}
