"""Public names of a folder that load on first use."""

import sys
import types

import lazy_loader


class _LazyPackage(types.ModuleType):
    """Package whose functions are not replaced by modules of their names.

    Python makes an imported module an attribute of its package, and
    `lazy_loader` before 0.6 leaves it there instead of the function.
    """

    def __setattr__(self, name, value):
        if name not in self.__all__ or not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


def attach_stub(package: str, file: str):
    """Do what `lazy_loader.attach_stub` does, and keep the names."""
    sys.modules[package].__class__ = _LazyPackage
    return lazy_loader.attach_stub(package, file)
