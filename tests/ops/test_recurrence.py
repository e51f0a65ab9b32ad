import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops import recurrence
from tests.layer_checks import (
    EXACT,
    assert_all_close,
    check_gradients,
    random,
    reference_gru,
    reference_lstm,
    to_numpy,
)


@pytest.mark.parametrize("rows", [(2,), (2, 3)])
def test_lstm_step(rows, float64):
    inputs, kernel, recurrent_kernel, bias = (
        random(*rows, 5),
        random(5, 16, seed=1),
        random(4, 16, seed=2),
        random(16, seed=3),
    )
    states = random(*rows, 4, seed=4), random(*rows, 4, seed=5)
    found = recurrence.lstm_step(
        ops.convert_to_tensor(inputs @ kernel + bias),
        *states,
        recurrent_kernel,
    )
    expected = reference_lstm(inputs, *states, kernel, recurrent_kernel, bias)
    assert_all_close(found, expected, **EXACT)


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


def test_gradients_of_the_steps(float64):
    variables = [
        keras.Variable(random(*shape, seed=seed), dtype="float64")
        for seed, shape in enumerate([(2, 12), (2, 3), (2, 3), (3, 12)])
    ]

    def lstm():
        projected, hidden, carry, kernel = (v.value for v in variables)
        new = recurrence.lstm_step(projected, hidden, carry, kernel)
        return ops.sum(ops.square(new[0])) + ops.sum(new[1])

    def gru():
        projected, hidden, _, kernel = (v.value for v in variables)
        new = recurrence.gru_step(
            projected[:, :9], hidden, kernel[:, :9], kernel[0, :9]
        )
        return ops.sum(ops.square(new))

    check_gradients(lstm, variables)
    check_gradients(gru, variables)


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
