"""Translation from text to text with trained models, in a TensorFlow graph."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
