import numpy as np
import pytest
from keras import ops

from luong_keras.ops import masking, products, windows
from tests.layer_checks import dtype_of, random, to_numpy


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


def test_positions_at_the_end_belong_to_the_last_word():
    # The sigmoid of a large number is 1, and then p_t is S.
    ends = np.array([[3.0, 2.9], [1.0, 0.0], [0.0, 0.0]], "float32")
    found = windows.floor_position(
        ops.convert_to_tensor(ends), np.array([3, 1, 0])
    )
    assert to_numpy(found).tolist() == [[2, 2], [0, 0], [0, 0]]


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
