"""Weights of every layer in files of every format."""

import h5py
import keras
import numpy as np
import pytest

from luong_keras import Bridge, Encoder
from tests.versions import exchange


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "layer_class, sizes", [(Encoder, (4,)), (Bridge, (4, 2))]
)
def test_weights_that_a_subclass_adds_are_saved(layer_class, sizes, tmp_path):
    class Gated(layer_class):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.gate = self.add_weight(name="gate", shape=(2,))

    def model():
        source = keras.Input((None, 3) if layer_class is Encoder else (3,))
        layer = Gated(*sizes)
        inputs = source if layer_class is Encoder else [source]
        return keras.Model(source, layer(inputs)), layer

    (saved, layer), (other, restored) = model(), model()
    layer.gate.assign([2.0, 3.0])
    path = tmp_path / "model.weights.h5"
    saved.save_weights(path)
    other.load_weights(path)
    for one, two in zip(layer.weights, restored.weights, strict=True):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(two)
        )
    assert keras.ops.convert_to_numpy(restored.gate).tolist() == [2, 3]
