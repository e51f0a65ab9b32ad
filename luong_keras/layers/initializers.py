"""Copies of initializers for the weights of a layer."""

import keras
from keras import ops

from luong_keras.ops import masking


def fresh_initializer(initializer):
    """Return a copy that draws other numbers, unless its seed is a number.

    A function stays as it is, and so does an initializer with a
    `SeedGenerator`, which draws other numbers at each call: a copy would begin
    anew.
    """
    if not isinstance(initializer, keras.initializers.Initializer) or (
        isinstance(
            getattr(initializer, "seed", None), keras.random.SeedGenerator
        )
    ):
        return initializer
    return initializer.clone()


def wide_initializer(initializer):
    """Return an initializer that draws in at least float32, then casts.

    An orthogonal matrix needs a decomposition that has no bfloat16 form.
    """
    initializer = fresh_initializer(initializer)

    def draw(shape, dtype=None):
        wide = initializer(shape, dtype=masking.wider_dtype(dtype))
        return ops.cast(wide, dtype)

    return draw
