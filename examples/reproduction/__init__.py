"""The paper, run again: its tables, its figures and its claims."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
