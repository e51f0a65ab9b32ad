"""Constructor arguments of all registered classes, and their serialization.

Attributes and configurations are compared with the values below, which all
differ from the defaults.
"""

import dataclasses
import inspect
import json
from pathlib import Path

import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras.layers.attention import scores
from luong_keras.layers.embedding import Embedding
from luong_keras.training.optimizers import (
    ClippedAdam,
    ClippedSGD,
    make_optimizer,
)
from tests.layer_checks import (
    few_at_first,
    prefix_mask,
    random,
    randomize,
    to_numpy,
)

# These tests do not depend on the backend.
pytestmark = pytest.mark.slow_on_jax

# Names of initializers in configurations.
WRITTEN = {"he_normal": "HeNormal", "he_uniform": "HeUniform", "ones": "Ones"}
# Arguments of every layer of Keras.
COMMON = {"name": "other", "dtype": "mixed_bfloat16", "trainable": False}
ATTENTION = {
    "use_scale": True,
    "dropout": 0.1,
    "seed": 3,
    "kernel_initializer": "he_normal",
}
CELL = {
    "num_layers": 2,
    "input_feeding": False,
    "use_bias": False,
    "attentional_bias": True,
    "attentional_activation": "relu",
    "kernel_initializer": "he_normal",
    "bias_initializer": "ones",
    "recurrent_initializer": "he_uniform",
}
CLIPS = {"cell_clip": 0.5, "gradient_clip": 0.25}
LSTM = {**CELL, **CLIPS, "unit_forget_bias": False}
DRIVER = {
    "return_sequences": False,
    "return_state": True,
    "dropout": 0.2,
    "dropout_style": "sequence",
    "deferred_gradients": False,
    "seed": 5,
}


def without(values, *names):
    return {name: values[name] for name in values if name not in names}


def local():
    return lk.LocalAttention(half_width=3, dropout=0.4)


DECODER = {"units": 4, "attention": local}
BAHDANAU_LSTM = DECODER | without(LSTM, "input_feeding")
BAHDANAU_GRU = DECODER | without(CELL, "input_feeding")
CONCAT = {"units": 3, "concat_form": "separate"}
LOCATION = {"max_length": 7, "mask_location": False}
MEASURE = {"pad_id": 5, "name": "other", "dtype": "float16"}
CLIPPED = {
    "clip_norm": 4.0,
    "count_embeddings": False,
    "on_nonfinite": "note",
    "learning_rate": 0.25,
}

# Sets of arguments for each class, which together cover all arguments.
ARGUMENTS = {
    lk.LuongAttention: [
        {"score_mode": "location", **LOCATION, **ATTENTION},
        {"score_mode": "concat", **CONCAT},
    ],
    lk.LocalAttention: [
        {
            "alignment": "monotonic",
            "half_width": 3,
            "sigma": 2.5,
            "gaussian": "inside_softmax",
            "clamp_position": False,
            **{"score_mode": "concat", **CONCAT, **ATTENTION},
        }
    ],
    lk.BahdanauAttention: [
        {"units": 3, **ATTENTION},
        {"normalize": True, "units": 4},
    ],
    lk.InputFeedingLSTMCell: [
        DECODER | LSTM,
        {"units": 4, "cell_clip": 0.5},
        {"units": 4, "gradient_clip": 0.5},
        {"units": 4, "attention": None},
    ],
    lk.InputFeedingGRUCell: [DECODER | CELL],
    lk.BahdanauLSTMCell: [BAHDANAU_LSTM],
    lk.BahdanauGRUCell: [BAHDANAU_GRU],
    lk.AttentionRNN: [{"cell": lambda: lk.InputFeedingGRUCell(4), **DRIVER}],
    lk.InputFeedingLSTM: [
        DECODER | LSTM | DRIVER,
        {"units": 4, "attention": None},
    ],
    lk.InputFeedingGRU: [DECODER | CELL | DRIVER],
    lk.BahdanauLSTM: [BAHDANAU_LSTM | DRIVER],
    lk.BahdanauGRU: [BAHDANAU_GRU | DRIVER],
    lk.OutputProjection: [
        {"vocabulary_size": 7, "embedding": lambda: Embedding(7, 3)}
        | {"use_bias": True, "kernel_initializer": "he_normal"}
    ],
    lk.WordLosses: [
        {"projection": lambda: lk.OutputProjection(7, use_bias=True)}
        | {"label_smoothing": 0.1, "pad_id": 3},
        {"projection": lambda: lk.OutputProjection(7), "sampled": 4, "seed": 3},
    ],
    lk.Bridge: [
        {"units": 4, "num_states": 3, "kernel_initializer": "he_normal"}
    ],
    lk.Encoder: [
        {
            "units": 4,
            "num_layers": 2,
            "recurrence": "gru",
            "reverse": True,
            "dropout": 0.2,
            "dropout_style": "sequence",
            "use_bias": False,
            "kernel_initializer": "he_normal",
            "seed": 5,
        },
        {"units": 4, "bidirectional": True, "dropout_style": "authors"} | CLIPS,
    ],
    Embedding: [{"input_dim": 7, "output_dim": 3}],
    lk.losses.TranslationLoss: [
        {"normalization": "sentence", "nominal_batch_size": 7, **MEASURE},
        {"normalization": "word"},
    ],
    lk.losses.MaskedSparseCategoricalCrossentropy: [
        {"label_smoothing": 0.1, "nominal_batch_size": 7, **MEASURE},
        {"normalization": "word", "label_smoothing": 0.2},
    ],
    lk.metrics.TokenPerplexity: [{"from_logits": True, **MEASURE}],
    lk.metrics.TokenAccuracy: [{"from_logits": True, **MEASURE}],
    lk.metrics.TokenCount: [MEASURE],
    **dict.fromkeys((scores.DotScore, scores.ScaledDotScore), [{}]),
    **dict.fromkeys((scores.CosineScore, scores.GeneralScore), [{}]),
    scores.ConcatScore: [CONCAT],
    scores.LocationScore: [LOCATION],
    ClippedSGD: [{**CLIPPED, "momentum": 0.5}],
    ClippedAdam: [{**CLIPPED, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125}],
}
ROWS = [
    pytest.param(kind, row, id=f"{kind.__name__}-{number}")
    for kind, rows in ARGUMENTS.items()
    for number, row in enumerate(rows)
]


def is_ours(kind):
    """Test whether a class is defined in this library."""
    return kind.__module__.split(".")[0] == lk.__name__


def arguments(kind):
    """Return the named arguments of a class, also inherited, with defaults."""
    found = {}
    for base in filter(is_ours, kind.__mro__):
        if "__init__" not in vars(base):
            continue  # defined by Keras
        parameters = inspect.signature(base.__init__).parameters.values()
        for argument in parameters:
            if argument.kind is argument.POSITIONAL_OR_KEYWORD or (
                argument.kind is argument.KEYWORD_ONLY
            ):
                found.setdefault(argument.name, argument.default)
        if not any(a.kind is a.VAR_KEYWORD for a in parameters):
            break  # Without **kwargs, it lists all arguments.
    found.pop("self", None)
    if issubclass(kind, keras.Layer):
        return without(found, *COMMON)
    return found


def test_all_registered_classes_are_tested():
    registered = {
        kind
        for name, kind in keras.saving.get_custom_objects().items()
        if name.startswith("luong_keras>")
        and is_ours(kind)
        # A functional model, made of inputs and outputs.
        and kind is not lk.models.TrainingModel
    }
    assert registered == set(ARGUMENTS)


@pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda kind: kind.__name__)
def test_all_arguments_are_tested(kind):
    """Check that some set of arguments differs from each default."""
    for name, default in arguments(kind).items():
        given = [row[name] for row in ARGUMENTS[kind] if name in row]
        assert any(value != default for value in given), name


@pytest.mark.parametrize(
    "kind",
    # The constructor of `Embedding` is that of Keras.
    [k for k in ARGUMENTS if issubclass(k, keras.Layer) and k is not Embedding],
    ids=lambda kind: kind.__name__,
)
def test_constructors_of_layers_name_all_their_arguments(kind):
    """Check that there are no **kwargs, which would accept a misspelt name."""
    named = inspect.signature(kind.__init__).parameters.values()
    assert {a.kind for a in named} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def make_with_values(kind, row):
    """Make an object; return it and its arguments as in `get_config`."""
    values = {k: v() if inspect.isfunction(v) else v for k, v in row.items()}
    return kind(**values), {
        name: WRITTEN.get(value, value)
        if isinstance(value, str)
        else type(value).__name__
        if isinstance(value, keras.Layer)
        else value
        for name, value in values.items()
    }


def config_value(value):
    """Return a configuration value, or the class of a serialized object."""
    if isinstance(value, dict) and "class_name" in value:
        if value["class_name"] == "DTypePolicy":
            return value["config"]["name"]
        return value["class_name"]
    return value


def attribute(thing, name):
    """Return an attribute, or its class or policy name if it is an object."""
    holder = thing
    if not hasattr(thing, name) or (name == "units" and hasattr(thing, "cell")):
        holder = thing.cell
    if name == "dtype" and isinstance(thing, keras.Layer):
        return thing.dtype_policy.name
    value = getattr(holder, name)
    if name == "learning_rate":
        return float(value)
    if isinstance(value, (keras.Layer, keras.initializers.Initializer)):
        return type(value).__name__
    return value.__name__ if inspect.isfunction(value) else value


@pytest.mark.parametrize("kind, row", ROWS)
def test_arguments_survive_serialization(kind, row):
    common = COMMON if issubclass(kind, keras.Layer) else {}
    thing, given = make_with_values(kind, common | row)
    config = json.loads(json.dumps(thing.get_config()))
    assert {name: config_value(config[name]) for name in given} == given
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(thing)
    )
    for one in (thing, kind.from_config(config), copy):
        assert type(one) is kind
        assert {name: attribute(one, name) for name in given} == given
        assert one.get_config() == thing.get_config()


# Defaults with a meaning in the paper or the documentation. All public classes
# and functions with such an argument have the same default.
DEFAULTS = {
    **{"alignment": "predictive", "half_width": 10, "score_mode": "general"},
    **{"gaussian": "auto", "clamp_position": True, "mask_location": True},
    **{"num_layers": 1, "input_feeding": True, "unit_forget_bias": True},
    **{"attentional_bias": False, "attentional_activation": "tanh"},
    **{"dropout": 0.0, "dropout_style": "zaremba", "reverse": False},
    **{"normalization": "sentence", "label_smoothing": 0.0, "pad_id": 0},
    **{"first_halved_epoch": 6, "halvings_per_epoch": 1, "factor": 0.5},
    **{"finetune_epoch": 5, "epoch_fraction": 1.0},
    **{"beam_size": 10, "size": 10, "stack_keeps": "best", "average": "logits"},
    **{"length_penalty": 0.0, "form": "power", "temperature": 1.0, "top_p": 1},
    **{"bos_id": 2, "eos_id": 3, "min_delta": 0.0, "min_rate": 0.0},
}


@pytest.mark.tensorflow
def test_public_names_have_the_documented_defaults():
    modules = lk, lk.decoding, lk.losses, lk.metrics
    public = [
        getattr(module, key) for module in modules for key in module.__all__
    ]
    halving = lk.LearningRateHalving
    public += [halving.after_epoch, halving.by_iteration]
    public += [lk.callbacks.ReduceOnPlateau]
    found = {
        (kind.__qualname__, argument.name): argument.default
        for kind in public
        # Dataclasses are configurations of a whole run.
        if callable(kind) and not dataclasses.is_dataclass(kind)
        for argument in inspect.signature(kind).parameters.values()
        if argument.name in DEFAULTS and argument.default is not argument.empty
    }
    assert {name for _, name in found} == set(DEFAULTS)
    assert found == {key: DEFAULTS[key[1]] for key in found}


# Values of the named optimizers.


@pytest.mark.parametrize(
    "name, kind, expected",
    [
        ("sgd", ClippedSGD, {"momentum": 0.0, "nesterov": False}),
        (
            "adam",
            ClippedAdam,
            {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-9, "amsgrad": False},
        ),
    ],
)
def test_named_optimizers_have_these_values(name, kind, expected):
    given = {"weight_decay": 0.125, "count_embeddings": False}
    optimizer = make_optimizer(name, 0.25, 4.0, **given)
    assert type(optimizer) is kind
    expected = expected | given | {"learning_rate": 0.25, "clip_norm": 4.0}
    expected |= {"clipnorm": None, "global_clipnorm": None, "clipvalue": None}
    expected |= {"use_ema": False}
    assert {k: attribute(optimizer, k) for k in expected} == expected
    usual = make_optimizer(name)
    assert float(usual.learning_rate) == 1.0
    assert (usual.clip_norm, usual.count_embeddings) == (5.0, True)
    assert usual.weight_decay is None
    assert make_optimizer(name, clip_norm=None).clip_norm is None


# Equal seeds give equal dropout, whatever was drawn before.

MASK = prefix_mask([5, 3], 5)


def _encode(layer):
    return layer(random(2, 5, 4), mask=MASK, training=True)[0]


def _attend(layer):
    return layer(random(2, 5, 4), random(2, 6, 4, seed=1), training=True)


def _decode(layer):
    return layer(random(2, 5, 4), memory=random(2, 6, 4, seed=1), training=True)


def _dot(**options):
    return lk.LuongAttention("dot", **options)


def _drop(kind, *arguments):
    return lambda seed: kind(*arguments, dropout=0.5, seed=seed)


def _decoder(kind):
    return lambda seed: kind(4, attention=_dot(), dropout=0.5, seed=seed)


SEEDED = {
    "Encoder": (_drop(lk.Encoder, 4), _encode),
    "LuongAttention": (_drop(lk.LuongAttention), _attend),
    "LocalAttention": (_drop(lk.LocalAttention), _attend),
    "BahdanauAttention": (_drop(lk.BahdanauAttention), _attend),
    "InputFeedingLSTM": (_decoder(lk.InputFeedingLSTM), _decode),
    "BahdanauGRU": (_decoder(lk.BahdanauGRU), _decode),
    # The weights of its attention layer.
    "AttentionRNN": (
        lambda seed: lk.AttentionRNN(
            lk.InputFeedingLSTMCell(4, attention=_dot(dropout=0.5)), seed=seed
        ),
        _decode,
    ),
}


@pytest.mark.parametrize(
    "name", few_at_first(SEEDED, ("Encoder", "AttentionRNN"))
)
def test_equal_seeds_give_equal_dropout(name):
    make, call = SEEDED[name]

    def output(seed, others):
        keras.utils.set_random_seed(others)
        layer = make(seed)
        call(layer)  # builds it
        weights = [w for w in layer.weights if "seed" not in w.path]
        assert weights or name == "LuongAttention"
        randomize(layer)
        return to_numpy(call(layer))

    first = output(7, others=1)
    np.testing.assert_array_equal(output(7, others=2), first)
    assert not np.array_equal(output(8, others=1), first)


# Callbacks: their arguments and the state that is saved with a run.

PLATEAU = {
    "monitor": "loss",
    "mode": "max",
    "factor": 0.25,
    "patience": 3,
    "min_delta": 0.125,
    "min_rate": 0.0625,
}
BEST = {"path": Path("x.weights.h5"), "monitor": "loss", "mode": "min"}
SPEED = {"count": "count", "name": "speed"}
CALLBACKS = [
    (
        lk.callbacks.BestWeights("x.weights.h5", "loss", "min"),
        BEST,
        {"best": 3.5},
    ),
    (
        lk.LearningRateHalving(initial_rate=None, steps_per_epoch=4),
        {"steps_per_epoch": 4},
        {"initial_rate": 0.75},
    ),
    (
        lk.callbacks.ReduceOnPlateau("loss", "max", 0.25, 3, 0.125, 0.0625),
        PLATEAU,
        {"best": 3.5, "waited": 2},
    ),
    (lk.callbacks.TokensPerSecond("count", "speed"), SPEED, {"seconds": 2.5}),
]


@pytest.mark.parametrize(
    "callback, attributes, state", CALLBACKS, ids=lambda value: None
)
def test_callbacks_keep_arguments_and_state(callback, attributes, state):
    assert {name: getattr(callback, name) for name in attributes} == attributes
    assert callback.get_state() != state
    others = callback.get_state()
    callback.set_state(json.loads(json.dumps(state)))
    assert callback.get_state() == {**others, **state}
    for name, value in state.items():
        # `seconds` is not an attribute, and the attribute `initial_rate` is the
        # constructor's argument.
        if name not in ("seconds", "initial_rate"):
            assert getattr(callback, name) == value
