"""Products with weights."""

import pytest
from keras import ops

from luong_keras.ops import products
from tests.layer_checks import dtype_of


@pytest.mark.parametrize(
    "dtype, wide",
    [("bfloat16", "float32"), ("float16", "float32"), ("float64", "float64")],
)
def test_product_is_computed_in_the_dtype_of_the_kernel(dtype, wide, float64):
    # 257 needs nine bits, bfloat16 has eight.
    x, kernel = ops.cast([[257.0]], "float32"), ops.cast([[1.0]], dtype)
    found = products.product(x, kernel)
    assert dtype_of(found) == wide
    assert float(found[0, 0]) == (256 if dtype == "bfloat16" else 257)
