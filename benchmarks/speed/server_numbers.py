"""Texts of float32 arrays in the responses of the batching server.

`WriteDecimal` of TensorFlow Serving (json_tensor.cc, 2.20.0) prints a float32
with 6 digits, or with 9 if 6 digits are a different number. It appends `.0` to
numbers without a point or an exponent. TensorFlow's kernels print here, as
they release Python's lock: several responses are printed at the same time.
"""

import numpy as np
import tensorflow as tf

# Digits that distinguish any two float32 numbers.
ALL_DIGITS = 9
# Powers of ten that are exact in float64.
EXACT = 22


def decimals(numbers):
    """Return the texts of a flat array of finite float32, as a tensor."""
    with tf.device("CPU:0"):
        groups = list(printed(numbers))
        texts = tf.dynamic_stitch(*zip(*groups, strict=True))
        return tf.reshape(texts, [len(numbers)])


def printed(numbers):
    """Yield pairs of positions and texts, one for each way to print."""
    size = np.abs(numbers)
    # TensorFlow's kernels print subnormal numbers as zero.
    tiny = (size > 0) & (size < np.finfo(np.float32).tiny)
    short = six_digits_suffice(numbers)
    # All digits precede the decimal point, which has to be added.
    whole = ~tiny & (size < np.where(short, 10.0**6, 10.0**ALL_DIGITS))
    whole[whole] = numbers[whole] == np.rint(numbers[whole])
    for chosen, options in (
        (whole, {"precision": 1}),
        (~tiny & ~whole & short, {"precision": 6, "shortest": True}),
        (~tiny & ~whole & ~short, {"precision": ALL_DIGITS, "shortest": True}),
    ):
        places = np.flatnonzero(chosen)
        texts = tf.strings.as_string(numbers[places], **options)
        yield places.astype(np.int32), texts
    places = np.flatnonzero(tiny)
    texts = [
        f"{numbers[place]:.{6 if short[place] else ALL_DIGITS}g}"
        for place in places
    ]
    yield places.astype(np.int32), tf.constant(texts, tf.string)


def six_digits_suffice(numbers):
    """Test whether 6 digits determine each number."""
    exact = numbers.astype(np.float64)
    size = np.abs(exact)
    answer = size == 0
    usual = (size > 10.0 ** (6 - EXACT)) & (size < 10.0**EXACT)
    exponents = np.floor(np.log10(size[usual])).astype(int)
    answer[usual] = rounds_to_itself(exact[usual], 5 - exponents)
    for place in np.flatnonzero(~usual & (size > 0)):
        answer[place] = np.float32(f"{exact[place]:.6g}") == numbers[place]
    return answer


def rounds_to_itself(exact, places):
    """Test whether rounding to decimal places leaves numbers unchanged."""
    up = 10.0 ** np.maximum(places, 0)
    down = 10.0 ** np.maximum(-places, 0)
    rounded = np.rint(exact * up / down) * down / up
    return rounded.astype(np.float32) == exact.astype(np.float32)
