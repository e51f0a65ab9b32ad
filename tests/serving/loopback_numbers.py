"""Numbers as the loopback server prints them, many at once.

`WriteDecimal` of TensorFlow Serving (json_tensor.cc, 2.20.0) prints 6 digits
and, where they are another number, all that a type needs: 9 or 17. Numbers
without a point or an exponent get `.0`. Here TensorFlow's kernels print:
they do not hold Python's lock, so that answers are printed side by side.
"""

import math

import numpy as np
import tensorflow as tf

# Digits that tell any two numbers of a type apart.
ALL_DIGITS = {"float32": 9, "float64": 17}
# Powers of ten that are exact in float64.
EXACT = 22


def decimals(numbers):
    """Texts of a flat array of float32 or float64, as a tensor."""
    with tf.device("CPU:0"):
        groups = list(printed(numbers))
        texts = tf.dynamic_stitch(*zip(*groups, strict=True))
        return tf.reshape(texts, [len(numbers)])


def printed(numbers):
    """Pairs of places and texts, for each way to print."""
    digits = ALL_DIGITS[numbers.dtype.name]
    size = np.abs(numbers)
    # TensorFlow's kernels take subnormal numbers for zero.
    tiny = (size > 0) & (size < np.finfo(numbers.dtype).tiny)
    finite = np.isfinite(numbers) & ~tiny
    short = six_digits_suffice(numbers)
    # Their digits are all before the point, which has to be added.
    whole = finite & (size < np.where(short, 10.0**6, 10.0**digits))
    whole[whole] = numbers[whole] == np.rint(numbers[whole])
    for chosen, options in (
        (whole, {"precision": 1}),
        (finite & ~whole & short, {"precision": 6, "shortest": True}),
        (finite & ~whole & ~short, {"precision": digits, "shortest": True}),
    ):
        places = np.flatnonzero(chosen)
        texts = tf.strings.as_string(numbers[places], **options)
        yield places.astype(np.int32), texts
    places = np.flatnonzero(~finite)
    texts = [
        unusual(number, 6 if is_short else digits)
        for number, is_short in zip(
            numbers[places].tolist(), short[places], strict=True
        )
    ]
    yield places.astype(np.int32), tf.constant(texts, tf.string)


def unusual(number, digits):
    """The text of a number that is not finite, or nearly zero."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.{digits}g}"


def six_digits_suffice(numbers):
    """Whether each number is the nearest one to itself in 6 digits."""
    exact = numbers.astype(np.float64)
    size = np.abs(exact)
    answer = size == 0
    usual = (size > 10.0 ** (6 - EXACT)) & (size < 10.0**EXACT)
    exponents = np.floor(np.log10(size[usual])).astype(int)
    answer[usual] = rounds_to_itself(exact[usual], 5 - exponents, numbers.dtype)
    others = ~usual & np.isfinite(numbers) & (size > 0)
    for place in np.flatnonzero(others):
        text = f"{exact[place]:.6g}"
        answer[place] = numbers.dtype.type(text) == numbers[place]
    return answer


def rounds_to_itself(exact, places, dtype):
    """Whether numbers are unchanged by rounding to decimal places."""
    up = 10.0 ** np.maximum(places, 0)
    down = 10.0 ** np.maximum(-places, 0)
    rounded = np.rint(exact * up / down) * down / up
    return rounded.astype(dtype) == exact.astype(dtype)
