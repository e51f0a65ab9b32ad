"""Shortcuts for tests that train runs of a few steps."""

import contextlib

import h5py
import numpy as np
import pytest
import tensorflow as tf

from luong_keras.recipe import stages


@contextlib.contextmanager
def quick_runs():
    """Train eagerly, since runs are short, and without exports or plots."""

    def export(translator, folder, **_):
        folder.mkdir(parents=True)
        return folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "export_saved_model", export)
        patch.setattr(stages, "plot_alignment", lambda *_: None)
        tf.config.run_functions_eagerly(True)
        try:
            yield
        finally:
            tf.config.run_functions_eagerly(False)


def arrays(path):
    """Return the arrays of a weights file by name."""
    found = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = np.array(item)

    with h5py.File(path) as file:
        file.visititems(add)
    return found
