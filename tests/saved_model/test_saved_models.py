"""Saved models in processes that have imported nothing but the package."""

import ast
import pathlib

import keras
import numpy as np
import pytest

import luong_keras
from luong_keras import layers, losses, metrics, optimizers
from tests.layer_checks import BACKEND
from tests.programs import run_program

# Saved models are loaded in the same way on every backend.
pytestmark = pytest.mark.slow_on_jax

ROOT = pathlib.Path(luong_keras.__file__).parent
UNITS, WORDS = 4, 7
KERAS_FIRST = """
import keras, sys
before = list(sys.meta_path)
import luong_keras
assert sys.meta_path == before
"""
MODULE_FIRST = """
from luong_keras.training.losses import TranslationLoss
import keras
"""
PROGRAM = """
{imports}
import sys
import numpy as np
model = keras.models.load_model({path!r})
np.savez({weights!r}, *model.get_weights())
objects = keras.saving.get_custom_objects()
assert not {names}.difference(objects), list(objects)
modules = [getattr(finder, "__module__", "") for finder in sys.meta_path]
assert not [name for name in modules if name.startswith("luong_keras")]
"""


def registered_names():
    """Yield `luong_keras>NAME` of all decorated classes in the source."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            decorators = getattr(node, "decorator_list", [])
            if any("register_keras" in ast.unparse(d) for d in decorators):
                yield f"luong_keras>{node.name}"


def names_in(config):
    """Yield the registered names in a model's configuration."""
    if isinstance(config, dict):
        yield config.get("registered_name")
        config = list(config.values())
    if isinstance(config, list | tuple):
        for part in config:
            yield from names_in(part)


def model_of_every_layer():
    source = keras.Input((None, UNITS))
    words = keras.Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, UNITS)(words)
    memory, *states = layers.Encoder(UNITS)(source)
    states = layers.Bridge(UNITS, num_states=2)(states)
    local = layers.InputFeedingLSTM(UNITS, attention=layers.LocalAttention())
    x = local(x, memory=memory, initial_state=states)
    luong, additive = layers.LuongAttention, layers.BahdanauAttention
    cells = (
        layers.InputFeedingLSTMCell(UNITS, attention=luong()),
        layers.InputFeedingGRUCell(UNITS, attention=luong()),
        layers.BahdanauLSTMCell(UNITS, attention=additive()),
        layers.BahdanauGRUCell(UNITS, attention=additive()),
    )
    for decoder in (
        layers.InputFeedingGRU(UNITS, attention=luong()),
        layers.BahdanauLSTM(UNITS, attention=additive()),
        layers.BahdanauGRU(UNITS, attention=additive()),
        *map(layers.AttentionRNN, cells),
    ):
        x = decoder(x, memory=memory)
    word_losses, _ = layers.WordLosses(layers.OutputProjection(WORDS))(x, words)
    model = keras.Model([source, words], word_losses)
    model.compile(
        optimizer=optimizers.ClippedAdam(0.1),
        loss=losses.TranslationLoss(),
        metrics=[metrics.TokenCount()],
    )
    return model


def run_in_fresh_process(program, status=0):
    # On JAX it starts faster without TensorFlow and does not need it.
    blocked = ["tensorflow"] if BACKEND == "jax" else []
    return run_program(program, *blocked, status=status, KERAS_BACKEND=BACKEND)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a model of every layer; return it and its path."""
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model = model_of_every_layer()
    model.save(path)
    return model, path


def test_the_model_has_every_layer(saved):
    config = keras.saving.serialize_keras_object(saved[0])
    public = set(layers.__all__) - {"AttentionCell", "Score"}  # base classes
    names = {f"luong_keras>{name}" for name in public}
    assert names.issubset(names_in(config))


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        pytest.param(KERAS_FIRST, id="keras first"),
        pytest.param("import luong_keras, keras", id="keras last"),
        pytest.param(
            MODULE_FIRST,
            id="a luong_keras module before keras",
            marks=pytest.mark.skipif(BACKEND != "jax", reason="starts slowly"),
        ),
    ],
)
def test_fresh_process_loads_the_model(saved, imports, tmp_path):
    model, path = saved
    weights = tmp_path / "weights.npz"
    paths = {"path": str(path), "weights": str(weights)}
    names = set(registered_names())
    run_in_fresh_process(PROGRAM.format(imports=imports, names=names, **paths))
    loaded = np.load(weights)
    expected = model.get_weights()
    assert len(loaded.files) == len(expected) > 50
    for name, value in zip(loaded.files, expected, strict=True):
        np.testing.assert_array_equal(loaded[name], value)


@pytest.mark.slow
def test_error_without_the_import_names_the_module(saved):
    program = f"import keras\nkeras.models.load_model({str(saved[1])!r})"
    error = run_in_fresh_process(program, status=1).splitlines()[-1]
    assert "Could not locate class" in error
    assert "make sure they are all imported" in error
    assert "'module': 'luong_keras." in error
