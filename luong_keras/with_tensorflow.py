"""TensorFlow, or the error that names the line which installs it."""

from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

__all__ = ["tf"]
