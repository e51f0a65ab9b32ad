"""`precision="auto"`: float32 or half of it, by measuring."""

import functools
import sys
import time

import numpy as np
from keras import ops

from luong_keras.config import Precision
from luong_keras.ops.devices import has_bfloat16

# The rest of a step, states, softmax and loss, is in float32 in either
# precision, and mixed precision adds its conversions.
_PAYS = 1.5
_SHORTEST = 0.005  # seconds: below, starting a product counts as well
_REPETITIONS = 5


def decided(precision: Precision) -> Precision:
    """Resolves `"auto"` for this machine; others stay as they are.

    A product of matrices is timed in float32 and in bfloat16, once in a
    process. Processors without instructions for bfloat16 take several times
    as long with it; those that have them, and cards, a half or less. On a GPU
    without bfloat16, such as a T4, float16 takes its place. What was found and
    chosen is said on the standard error.

    Args:
        precision: as `ModelConfig.precision`.

    Returns:
        `"mixed_bfloat16"`, or `"mixed_float16"`, where its product takes at
        most two thirds of the time, else `"float32"`, for `"auto"`.
    """
    return _faster() if precision == "auto" else precision


@functools.cache
def _faster() -> Precision:
    size = 512
    while (seconds := product_seconds(size, "float32")) < _SHORTEST:
        size *= 2
    half = "bfloat16" if has_bfloat16() else "float16"
    rounded = product_seconds(size, half)
    chosen: Precision = "float32"
    if seconds >= _PAYS * rounded:
        chosen = "mixed_bfloat16" if half == "bfloat16" else "mixed_float16"
    print(
        f"precision: {chosen}, for a product of {size} x {size} matrices "
        f"takes {1000 * seconds:.1f} ms in float32 and {1000 * rounded:.1f} "
        f"ms in {half}",
        file=sys.stderr,
    )
    return chosen


def product_seconds(size: int, dtype: str) -> float:
    """The time of one product of square matrices: the shortest of several."""
    matrix = ops.cast(np.full((size, size), 0.5, "float32"), dtype)
    times = []
    for _ in range(_REPETITIONS + 1):  # the first one warms up
        start = time.perf_counter()
        # To read a number is to wait for it, on every backend.
        number = ops.matmul(matrix, matrix)[0, 0]
        ops.convert_to_numpy(ops.cast(number, "float32"))
        times.append(time.perf_counter() - start)
    return min(times[1:])
