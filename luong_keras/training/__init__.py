"""Losses, metrics, schedules, callbacks and the resumable `fit`.

Nothing here knows the model or the text: a translate function, a scorer and
the batches are arguments. The modules import `keras` alone, so they work on
every backend.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
