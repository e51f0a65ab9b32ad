import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops import masking, products, windows
from tests.layer_checks import (
    EXACT,
    dtype_of,
    gradients,
    prefix_mask,
    random,
    sigmoid,
    softmax,
    to_numpy,
)


def test_monotonic_position_stays_inside_the_sentence():
    found = windows.monotonic_position(np.arange(4), np.array([6, 2, 0]))
    assert to_numpy(found).tolist() == [[0, 1, 2, 3], [0, 1, 1, 1], [0] * 4]


def test_predictive_position_is_equation_9(float64):
    query, kernel, vector = random(2, 3, 4), random(4, 5), random(5)
    lengths = np.array([9, 4])
    found = windows.predictive_position(query, lengths, kernel, vector)
    expected = lengths[:, None] * sigmoid(np.tanh(query @ kernel) @ vector)
    np.testing.assert_allclose(found, expected, **EXACT)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_predicts_positions_in_float32(dtype):
    def zeros(*shape):
        return ops.zeros(shape, dtype=dtype)

    # bfloat16 has no 300.5, float16 no 3000.5 (both are sigmoid(0) S).
    lengths = np.array([601, 6001])
    found = windows.predictive_position(
        zeros(2, 1, 4), lengths, zeros(4, 4), zeros(4)
    )
    assert dtype_of(found) == "float32"
    assert to_numpy(found).tolist() == [[300.5], [3000.5]]


def test_the_centre_is_the_floor_and_at_most_the_last_position():
    position = [[0.0, 3.9, 5.0], [0.2, 1.99, 2.0], [0.1, 0.9, 1.0]]
    found = windows.floor_position(
        ops.convert_to_tensor(position), np.array([5, 2, 1])
    )
    assert to_numpy(found).tolist() == [[0, 3, 4], [0, 1, 1], [0, 0, 0]]


def test_window_extends_half_width_to_each_side():
    mask = windows.window_mask(
        np.array([[0, 4, 6]], "int32"), 2, ops.arange(7, dtype="int32")
    )
    assert to_numpy(mask)[0].tolist() == [
        [1, 1, 1, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 1],
    ]


def test_the_gaussian_of_equation_10(float64):
    found = to_numpy(windows.gaussian(np.array([[2.5]]), 2.0, np.arange(6)))[
        0, 0
    ]
    distances = np.array([2.5, 1.5, 0.5, 0.5, 1.5, 2.5])
    np.testing.assert_allclose(found, np.exp(-(distances**2) / 8), **EXACT)


def test_the_four_forms_of_local_weights(float64):
    scores, mask = random(2, 3, 5), prefix_mask([5, 2], 5)[:, None]
    gaussian = np.random.default_rng(1).uniform(size=(2, 3, 5))

    def found(form):
        return to_numpy(windows.local_weights(scores, mask, gaussian, form))

    product = softmax(scores, mask) * gaussian
    np.testing.assert_allclose(found("none"), softmax(scores, mask), **EXACT)
    np.testing.assert_allclose(found("after_softmax"), product, **EXACT)
    np.testing.assert_allclose(
        found("renormalized"), product / product.sum(-1, keepdims=True), **EXACT
    )
    np.testing.assert_allclose(
        found("inside_softmax"), softmax(scores * gaussian, mask), **EXACT
    )
    assert {"none", "after_softmax", "renormalized", "inside_softmax"} == set(
        windows.GAUSSIANS
    )


@pytest.mark.parametrize("form", windows.GAUSSIANS)
def test_an_empty_window_gives_zeros_and_finite_gradients(form):
    scores = keras.Variable(random(1, 2, 3))
    gaussian = np.ones((1, 2, 3), "float32")
    mask = np.array([[[True, False, True], [False] * 3]])

    def weights():
        return windows.local_weights(
            ops.convert_to_tensor(scores), mask, gaussian, form
        )

    assert to_numpy(weights())[0, 1].tolist() == [0, 0, 0]
    (gradient,) = gradients(lambda: ops.sum(ops.square(weights())), [scores])
    assert np.isfinite(gradient).all() and gradient[0, 0, 0] != 0


def test_renormalizing_a_gaussian_of_zeros_gives_zeros():
    zero = np.zeros((1, 1, 3), "float32")
    mask = np.ones((1, 1, 3), bool)
    found = windows.local_weights(zero, mask, zero, "renormalized")
    assert to_numpy(found).tolist() == [[[0, 0, 0]]]


def test_window_indices_stay_inside_the_source():
    centre = np.array([[0, 4, 6]], "int32")
    found = to_numpy(windows.window_indices(centre, 2, 7))[0].tolist()
    assert found == [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6], [2, 3, 4, 5, 6]]
    # A window has at most as many positions as the source.
    found = to_numpy(windows.window_indices(centre[:, :1], 2, 3))[0].tolist()
    assert found == [[0, 1, 2]]


def test_gathered_windows_are_spread_to_their_positions():
    source = random(2, 7, 3)
    positions = np.array([[[0, 1], [5, 6]], [[2, 3], [3, 4]]], "int32")
    rows = to_numpy(products.gather_windows(source, positions))
    assert rows.shape == (4, 2, 3)
    np.testing.assert_allclose(rows[1], source[0, 5:7], rtol=1e-6)
    np.testing.assert_allclose(rows[2], source[1, 2:4], rtol=1e-6)
    values = np.arange(1.0, 9.0, dtype="float32").reshape(2, 2, 2)
    first = positions[..., :1].astype(masking.INDEX_DTYPE)
    dense = to_numpy(products.spread_windows(values, first, 7))
    assert dense[0].tolist() == [[1, 2, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3, 4]]
    assert dense[1].tolist() == [[0, 0, 5, 6, 0, 0, 0], [0, 0, 0, 7, 8, 0, 0]]
