"""Weights of every layer in files of every format."""

import h5py
import keras
import pytest

from luong_keras import Encoder
from tests.versions import exchange


@pytest.mark.slow_on_jax
def test_files_of_every_format_restore_the_outputs(tmp_path):
    exchange.write(tmp_path / "files")
    assert exchange.read(tmp_path / "files") == []


def test_weights_of_another_format_are_refused(tmp_path):
    source = keras.Input((None, 3))
    model = keras.Model(source, Encoder(4)(source))
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        del file["layers/encoder/vars/format"]
    with pytest.raises(ValueError, match="`Encoder` .* format 2. Received"):
        model.load_weights(path)
