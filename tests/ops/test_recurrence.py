import numpy as np
import pytest
from keras import ops

from luong_keras.ops import recurrence
from tests.layer_checks import EXACT, random, reference_gru, to_numpy


@pytest.mark.parametrize("use_bias", [True, False])
def test_gru_step(use_bias, float64):
    inputs, hidden = random(2, 5), random(2, 4, seed=1)
    kernel, recurrent_kernel = random(5, 12, seed=2), random(4, 12, seed=3)
    bias = random(2, 12, seed=4) if use_bias else None
    projected = inputs @ kernel + (bias[0] if use_bias else 0)
    found = recurrence.gru_step(
        projected, hidden, recurrent_kernel, bias[1] if use_bias else None
    )
    (expected,) = reference_gru(inputs, hidden, kernel, recurrent_kernel, bias)
    np.testing.assert_allclose(found, expected, **EXACT)


def test_reversal_leaves_padding_in_place():
    words = np.array([[1, 2, 3, 0], [4, 0, 0, 0], [5, 6, 7, 8], [0] * 4])
    found = recurrence.reverse_within_mask(words, words != 0)
    assert to_numpy(found).tolist() == [
        [3, 2, 1, 0],
        [4, 0, 0, 0],
        [8, 7, 6, 5],
        [0] * 4,
    ]


def test_reversing_twice_gives_the_sequence_back():
    x, mask = random(2, 4, 3), np.array([[True] * 4, [True] * 2 + [False] * 2])
    reverse = recurrence.reverse_within_mask
    assert not np.array_equal(to_numpy(reverse(x, mask)), x)
    found = to_numpy(reverse(reverse(x, mask), mask))
    np.testing.assert_allclose(found, x, rtol=1e-6)
    np.testing.assert_array_equal(
        to_numpy(reverse(x, None)), to_numpy(ops.convert_to_tensor(x))[:, ::-1]
    )
