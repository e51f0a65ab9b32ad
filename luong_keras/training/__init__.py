"""Losses, metrics, schedules, callbacks and the resumable `fit`.

They do not depend on the model or the text: a translate function, a scorer and
the batches are arguments. They work on every backend of Keras.
"""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
