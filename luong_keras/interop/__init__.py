"""Weights from TensorFlow Addons and from the authors' program."""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
