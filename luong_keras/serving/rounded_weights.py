"""Weights kept in 16 bits, computed with in their own type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import keras

from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

DTYPES = ("bfloat16", "float16")


class RoundedWeights:
    """Copies of variables that take half the place of float32.

    Each call makes the weights from them once, before its loops; sums and
    products have the precision that they had.

    Args:
        variables: Keras variables; those of integers stay as they are.
        dtype: `"bfloat16"`, of float32's range and two to three digits, or
            `"float16"`, of three to four digits up to 65,504.

    Raises:
        ValueError: for another type, or where a weight is out of its range.
    """

    def __init__(self, variables: Iterable[keras.Variable], dtype: str) -> None:
        if dtype not in DTYPES:
            raise ValueError(
                f"Weights are rounded to one of {DTYPES}. Received: {dtype!r}."
            )
        self._own = [v for v in variables if v.dtype.startswith("float")]
        self.rounded = []
        for variable in self._own:
            rounded = tf.cast(variable.value, dtype)
            if not bool(tf.reduce_all(tf.math.is_finite(rounded))):
                raise ValueError(
                    f"A weight of {variable.path} is outside of the range of "
                    f"{dtype}. Use 'bfloat16', which has float32's range."
                )
            self.rounded.append(tf.Variable(rounded, trainable=False))

    def reading(self, function: Callable) -> Callable:
        """The same function, with the rounded weights."""

        def with_rounded_weights(*arguments):
            mapping = [
                (own, tf.cast(rounded, own.dtype))
                for own, rounded in zip(self._own, self.rounded, strict=True)
            ]
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arguments)

        return with_rounded_weights
