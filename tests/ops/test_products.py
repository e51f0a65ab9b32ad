"""Products with weights."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops import products
from tests.layer_checks import (
    EXACT,
    dtype_of,
    gradients,
    random,
    to_numpy,
    weighted_sum,
)


@pytest.mark.parametrize(
    "dtype, wide",
    [("bfloat16", "float32"), ("float16", "float32"), ("float64", "float64")],
)
def test_a_product_is_made_in_the_kernels_dtype(dtype, wide, float64):
    # 257 needs nine bits, bfloat16 has eight.
    x, kernel = ops.cast([[257.0]], "float32"), ops.cast([[1.0]], dtype)
    found = products.product(x, kernel)
    assert dtype_of(found) == wide
    assert float(found[0, 0]) == (256 if dtype == "bfloat16" else 257)


def test_masked_rows_are_not_multiplied(float64):
    x, kernel = random(3, 2, 4), random(4, 5, seed=1)
    mask = np.array([[True, True], [True, False], [False, False]])
    x, kernel = (keras.Variable(v, dtype="float64") for v in (x, kernel))
    weights = random(3, 2, 5, seed=2)

    def loss():
        found = products.masked_product(x + 0, kernel + 0, mask)
        return weighted_sum(found, weights)

    expected = to_numpy(x) @ to_numpy(kernel) * mask[..., None]
    found = products.masked_product(x + 0, kernel + 0, mask)
    np.testing.assert_allclose(found, expected, **EXACT)
    d_x, d_kernel = gradients(loss, [x, kernel])
    weights = weights * mask[..., None]
    np.testing.assert_allclose(d_x, weights @ to_numpy(kernel).T, **EXACT)
    rows = to_numpy(x).reshape(-1, 4)
    np.testing.assert_allclose(
        d_kernel, rows.T @ weights.reshape(-1, 5), **EXACT
    )
    none = products.masked_product(x + 0, kernel + 0, mask & False)
    np.testing.assert_array_equal(none, np.zeros((3, 2, 5)))
    if keras.backend.backend() == "tensorflow":
        x.assign(np.where(mask[..., None], to_numpy(x), np.nan))
        found = products.masked_product(x + 0, kernel + 0, mask)
        np.testing.assert_allclose(found, expected, **EXACT)
