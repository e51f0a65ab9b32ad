import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops import recurrence
from tests.layer_checks import (
    EXACT,
    check_gradients,
    dtype_of,
    gradients,
    random,
    reference_gru,
    reference_lstm,
    to_numpy,
    weighted_sum,
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
    np.testing.assert_allclose(found[0], expected[0], **EXACT)
    np.testing.assert_allclose(found[1], expected[1], **EXACT)


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


@pytest.mark.parametrize(
    "dtype, wide",
    [("bfloat16", "float32"), ("float16", "float32"), ("float64", "float64")],
)
def test_a_product_is_made_in_the_kernels_dtype(dtype, wide, float64):
    # 257 needs nine bits, bfloat16 has eight.
    x, kernel = ops.cast([[257.0]], "float32"), ops.cast([[1.0]], dtype)
    found = recurrence.product(x, kernel)
    assert dtype_of(found) == wide
    assert float(found[0, 0]) == (256 if dtype == "bfloat16" else 257)


def test_masked_rows_are_not_multiplied(float64):
    x, kernel = random(3, 2, 4), random(4, 5, seed=1)
    mask = np.array([[True, True], [True, False], [False, False]])
    x, kernel = (keras.Variable(v, dtype="float64") for v in (x, kernel))
    weights = random(3, 2, 5, seed=2)

    def loss():
        found = recurrence.masked_product(x + 0, kernel + 0, mask)
        return weighted_sum(found, weights)

    expected = to_numpy(x) @ to_numpy(kernel) * mask[..., None]
    found = recurrence.masked_product(x + 0, kernel + 0, mask)
    np.testing.assert_allclose(found, expected, **EXACT)
    d_x, d_kernel = gradients(loss, [x, kernel])
    weights = weights * mask[..., None]
    np.testing.assert_allclose(d_x, weights @ to_numpy(kernel).T, **EXACT)
    rows = to_numpy(x).reshape(-1, 4)
    np.testing.assert_allclose(
        d_kernel, rows.T @ weights.reshape(-1, 5), **EXACT
    )
    none = recurrence.masked_product(x + 0, kernel + 0, mask & False)
    np.testing.assert_array_equal(none, np.zeros((3, 2, 5)))
    if keras.backend.backend() == "tensorflow":
        x.assign(np.where(mask[..., None], to_numpy(x), np.nan))
        found = recurrence.masked_product(x + 0, kernel + 0, mask)
        np.testing.assert_allclose(found, expected, **EXACT)


def test_reversal_is_within_the_sentence():
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
