"""Dropout whose draws are a function of the seed's state."""

import keras
from keras import backend, ops


def dropout(x, rate, seed_generator, noise_shape=None):
    """`keras.random.dropout`, drawn from the generator on every backend.

    On torch Keras asks torch's own generator, which no snapshot has, unless
    the generator was made of a number or a shape is given.

    Example:
        >>> from keras.random import SeedGenerator
        >>> dropout(ops.ones((2, 3)), 0.5, SeedGenerator()).shape[1]
        3
    """
    if noise_shape is None and backend.backend() == "torch":
        noise_shape = ops.shape(x)
    return keras.random.dropout(
        x, rate, noise_shape=noise_shape, seed=seed_generator
    )
