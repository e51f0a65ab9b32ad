"""Makes every class that a saved model can name known to Keras.

`keras.models.load_model` looks a class up under the name it was registered
with, which happens when its module is imported. Importing `luong_keras`
imports neither its modules nor Keras: a client of a server needs no backend,
and a command sets `KERAS_BACKEND` before Keras reads it. So the modules are
imported with Keras: at once where it is there already, and otherwise right
after it has been executed.

Keras has no entry point for that, so a finder waits for it. The modules of
`layers`, `models` and `ops` import each other; were one of them half imported
when Keras comes, the others would fail. Therefore those folders import Keras
first of all. Those of `training` do not import each other.
"""

import importlib
import pkgutil
import sys

# All modules of this folder, and those of other folders.
FOLDER = "luong_keras.layers"
MODULES = (
    "luong_keras.models.training_model",
    "luong_keras.training.losses",
    "luong_keras.training.metrics",
    "luong_keras.training.optimizers",
)


def register() -> None:
    """Imports whatever a saved model can name."""
    folder = importlib.import_module(FOLDER)
    for module in pkgutil.walk_packages(folder.__path__, f"{FOLDER}."):
        importlib.import_module(module.name)
    for name in MODULES:
        importlib.import_module(name)


class _KerasFinder:
    """Finds Keras as the finders behind it do, and registers after it.

    It stays in `sys.meta_path` and does nothing more: a finder that is taken
    out while another import walks through the list makes it skip the next.
    """

    waiting = False

    def find_spec(self, name, path=None, target=None):
        """Never finds anything but Keras."""
        if not self.waiting:
            return None
        if name != "keras":
            if _keras_is_complete():
                self.finish()
            return None
        spec = self._spec_of_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._finish_after(spec.loader)
        return spec

    def _spec_of_others(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _finish_after(self, loader):
        execute = loader.exec_module

        def exec_module(module):
            del loader.exec_module  # the class has its own
            execute(module)  # raises where there is no backend: goes on waiting
            self.finish()

        loader.exec_module = exec_module

    def finish(self):
        """Registers, once."""
        if self.waiting:
            self.waiting = False
            register()


_FINDER = _KerasFinder()


def register_with_keras() -> None:
    """Registers now, or as soon as Keras is imported."""
    if sys.modules.get("keras"):  # None where a program blocks it
        import keras  # noqa: F401  (waits for a thread that is importing it)

        if _keras_is_complete():
            register()
            return
    # Not there yet, or this is imported from within Keras' own import.
    _FINDER.waiting = True
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def _keras_is_complete():
    spec = getattr(sys.modules.get("keras"), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)
