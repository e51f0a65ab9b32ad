"""Export of a translator as a SavedModel, and the checks of one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
