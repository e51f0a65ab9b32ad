import numpy as np
import pytest
from keras import ops

from luong_keras.ops import masking
from tests.layer_checks import dtype_of, prefix_mask, random, to_numpy


@pytest.mark.parametrize(
    "dtype, wide",
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_results_are_in_the_wider_of_float32_and_the_dtype(
    dtype, wide, float64
):
    scores = ops.cast(random(2, 3), dtype)
    mask = prefix_mask([2, 3], 3)
    assert masking.wider_dtype(dtype) == wide
    assert dtype_of(masking.upcast(scores)) == wide
    assert dtype_of(masking.masked_softmax(scores)) == wide
    assert dtype_of(masking.masked_softmax(scores, mask)) == wide
    assert dtype_of(masking.zero_where_masked(scores, mask[:, 0])) == dtype


def test_span_reaches_from_the_first_to_the_last_word():
    rows = ["....", "xx..", "xxxx", "..xx", ".x..", ".x.x"]
    mask = np.array([[place == "x" for place in row] for row in rows])
    first, length = masking.span(mask)
    assert ops.convert_to_numpy(first).tolist() == [0, 0, 0, 2, 1, 1]
    assert ops.convert_to_numpy(length).tolist() == [0, 2, 4, 2, 1, 3]


def test_masked_scores_are_ignored_and_extremes_do_not_overflow():
    scores = np.array([[1e4, 1e4, np.nan], [-1e4, -1e4 - 1, np.inf]])
    mask = np.array([[True, True, False]])
    weights = masking.masked_softmax(scores.astype("float32"), mask)
    e = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(
        weights, [[0.5, 0.5, 0], [e, 1 - e, 0]], rtol=1e-5
    )


def test_one_position_has_weight_one_without_a_warning(recwarn):
    scores = random(2, 3, 1).astype("float32")
    weights = masking.masked_softmax(scores)
    np.testing.assert_array_equal(weights, np.ones((2, 3, 1)))
    assert not [x for x in recwarn if issubclass(x.category, UserWarning)]


def test_zero_where_masked_replaces_and_does_not_multiply():
    x = np.array([[1.0, 2.0], [np.inf, np.nan]], "float32")
    mask = np.array([True, False])
    assert to_numpy(masking.zero_where_masked(x, mask)).tolist() == [
        [1, 2],
        [0, 0],
    ]
    assert masking.zero_where_masked(x, None) is x
