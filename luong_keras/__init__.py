"""Luong attention, input feeding and beam search for Keras.

The public names are in `__init__.pyi` and load on first use: the layers work
without TensorFlow, and the client of a server without Keras.
"""

import lazy_loader

from luong_keras.moved import NAMES, moved_name
from luong_keras.registration import register_with_keras

__version__ = "0.2.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    if name in NAMES:
        raise moved_name(name)
    return _load(name)


register_with_keras()
