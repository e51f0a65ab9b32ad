"""Luong attention, input feeding and beam search for Keras.

Importing it imports Keras and registers the classes that a saved model can
name. All other names of `__init__.pyi` load on first use: the layers work
without TensorFlow.
"""

import itertools
import os
import sys

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# The command sets the variable: it chooses the backend, and imports what it
# needs, when it has read its arguments. So does `python -m luong_keras`.
_lazy = bool(os.environ.get("LUONG_KERAS_LAZY")) or any(
    option == "-m" and module.split(".")[0] == __name__
    for option, module in itertools.pairwise(sys.orig_argv)
)
if not _lazy:
    try:
        import keras  # noqa: F401
    except ImportError:
        # It has no backend. What needs one raises this error when it is used.
        pass
    else:
        from luong_keras import layers, losses, metrics, optimizers  # noqa: F401
        from luong_keras.models import training_model  # noqa: F401
