"""Word alignments: links, error rate, word pairs and dictionaries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
