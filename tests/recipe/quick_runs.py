"""Shortcuts for tests that train runs of a few steps."""

import contextlib

import h5py
import numpy as np
import pytest
import tensorflow as tf

from luong_keras.recipe import stages

# Settings of a model that is trained in seconds.
TINY = {
    "units": 8,
    "embedding_size": 6,
    "beam_size": 1,
    "training.samples": 0,
    # Untrained models write translations of the maximum length.
    "decoding.max_length_ratio": 0.0,
    "decoding.max_length_offset": 3,
}


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


def weights(path):
    """Return the arrays of a weights file without the states of seeds."""
    return {n: a for n, a in arrays(path).items() if a.dtype.kind == "f"}


def same(first, second):
    """Test whether two files have equal weights."""
    first, second = weights(first), weights(second)
    return all(np.array_equal(first[name], second[name]) for name in first)


def write_tsv(path, pairs):
    """Write pairs as lines; return the path as text."""
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    path.write_text(text, encoding="utf-8")
    return str(path)
