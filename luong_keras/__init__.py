"""Luong attention, input feeding and beam search for Keras.

Importing the package imports Keras and registers the classes that a saved model
can name. All other names of `__init__.pyi` load on first use, so the layers
work without TensorFlow.
"""

import contextlib
import itertools
import os
import sys

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# The command sets the variable: it reads its arguments before it chooses the
# backend and imports modules. So does `python -m luong_keras`.
_lazy = bool(os.environ.get("LUONG_KERAS_LAZY")) or any(
    option == "-m" and module.split(".")[0] == __name__
    for option, module in itertools.pairwise(sys.orig_argv)
)


@contextlib.contextmanager
def _hide_notebook_messages():
    """Hide the messages of TensorFlow at every start, in a notebook."""
    if "ipykernel" not in sys.modules:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


if not _lazy:
    try:
        with _hide_notebook_messages():
            import keras  # noqa: F401
    except ImportError:
        # Keras has no backend. Names that need one raise this error when used.
        pass
    else:
        from luong_keras import layers, losses, metrics, optimizers  # noqa:F401
        from luong_keras.models import training_model  # noqa: F401
