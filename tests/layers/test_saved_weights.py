"""Weights of every layer in files of every format."""

import functools

import h5py
import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras import Bridge, Encoder
from luong_keras.layers.attention import scores
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


FROZEN = {
    "encoder": functools.partial(Encoder, 4),
    "two directions": functools.partial(Encoder, 4, bidirectional=True),
    "clipped": functools.partial(Encoder, 4, cell_clip=50),
    "bridge": functools.partial(Bridge, 4, 2),
    "lstm": functools.partial(lk.InputFeedingLSTM, 4),
    "gru": functools.partial(lk.InputFeedingGRU, 4, attention="local-p"),
    "bahdanau": functools.partial(lk.BahdanauLSTM, 4),
    "driver": lambda **options: lk.AttentionRNN(
        lk.InputFeedingLSTMCell(4, attention="concat"), **options
    ),
    "attention": functools.partial(lk.LuongAttention, "general"),
}


@pytest.mark.parametrize("by_constructor", [True, False])
@pytest.mark.parametrize("name", FROZEN)
def test_frozen_layers_stay_frozen(name, by_constructor, tmp_path):
    options = {"trainable": False} if by_constructor else {}
    layer = FROZEN[name](**options)
    words, memory = keras.Input((None, 4)), keras.Input((None, 4))
    last = keras.Input((4,))
    arguments = {
        "bridge": ([last],),
        **dict.fromkeys(("encoder", "two directions", "clipped"), (words,)),
    }.get(name, (words, memory))
    model = keras.Model(arguments, layer(*arguments))
    if not by_constructor:
        layer.trainable = False
    model.save(tmp_path / "model.keras")
    for other in (
        model,
        keras.models.clone_model(model),
        keras.models.load_model(tmp_path / "model.keras"),
    ):
        assert other.trainable_variables == []
        assert len(other.weights) == len(model.weights) > 0


def test_frozen_cells_have_frozen_attention():
    cell = lk.InputFeedingLSTMCell(4, attention="concat", trainable=False)
    cell.build((None, 3), memory_shape=(None, 5, 2))
    assert cell.trainable_variables == []
    assert not cell.attention.trainable


@pytest.mark.parametrize(
    "score",
    [
        *(scores.DotScore(), scores.ScaledDotScore(), scores.CosineScore()),
        *(scores.GeneralScore(), scores.ConcatScore(3, "separate")),
        scores.LocationScore(7, mask_location=False),
    ],
)
def test_scores_given_as_objects_are_saved_with_their_arguments(
    score, tmp_path
):
    query, value = keras.Input((3, 4)), keras.Input((5, 4))
    model = keras.Model([query, value], lk.LuongAttention(score)(query, value))
    model.save(tmp_path / "model.keras")
    inputs = [np.full((2, length, 4), 0.5 + length) for length in (3, 5)]
    for other in (
        keras.models.load_model(tmp_path / "model.keras"),
        keras.models.clone_model(model),
    ):
        (found,) = [x for x in other.layers if x.name == model.layers[-1].name]
        assert type(found.score_mode) is type(score)
        assert found.score_mode.get_config() == score.get_config()
        other.set_weights(model.get_weights())
        np.testing.assert_allclose(other(inputs), model(inputs), rtol=1e-6)


def test_a_score_saves_only_arguments_of_its_own_constructor():
    class Fixed(scores.ConcatScore):
        def __init__(self):
            super().__init__(units=3)

    assert Fixed().get_config() == {}
    Fixed.from_config({})


def test_arguments_of_a_score_are_the_attributes_of_their_names():
    class Tempered(scores.DotScore):
        def __init__(self, factor=2.0):
            self.factor = factor

    class Forgetful(scores.DotScore):
        def __init__(self, factor=2.0):
            self.other = factor

    assert Tempered(5.0).get_config() == {"factor": 5.0}
    with pytest.raises(NotImplementedError, match="no attribute 'factor'"):
        keras.saving.serialize_keras_object(lk.LuongAttention(Forgetful()))
