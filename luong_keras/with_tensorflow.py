"""TensorFlow, or an error that tells how to install it."""

from luong_keras.missing_package import needs

with needs("tensorflow"):
    import tensorflow as tf

__all__ = ["tf"]
