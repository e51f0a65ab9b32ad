"""Outputs and gradients without dropout are equal in training and inference.

Compared are the outputs at all real positions of padded sentences, and their
gradients with respect to the inputs and all weights.
"""

import functools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.config import AttentionConfig, ModelConfig
from luong_keras.models.translation_model import TranslationModel
from tests.layer_checks import (
    BACKEND,
    LAYERS,
    UNITS,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    to_numpy,
)

BATCH, STEPS, SOURCE = 3, 4, 6
STEP_MASK = prefix_mask([4, 2, 1], STEPS)
SOURCE_MASK = prefix_mask([6, 1, 4], SOURCE)
TIGHT = {"rtol": 1e-9, "atol": 1e-9}

pytestmark = pytest.mark.usefixtures("float64")
tensorflow = pytest.mark.tensorflow  # JAX takes minutes to compile them


def only_one_on_jax(names, chosen):
    return [
        pytest.param(name, marks=() if name == chosen else tensorflow)
        for name in names
    ]


class InMode:
    """A layer that is called with a fixed `training` argument."""

    def __init__(self, layer, training):
        self._layer = layer
        self._training = training

    def __call__(self, *args, **kwargs):
        return self._layer(*args, training=self._training, **kwargs)

    def __getattr__(self, name):
        return getattr(self._layer, name)


def weighted_sum(outputs):
    """Return a weighted sum of (tensor, mask or None) pairs, but no padding."""
    total = 0.0
    for i, (output, mask) in enumerate(outputs):
        weights = random(*output.shape, seed=30 + i)
        if mask is not None:
            weights *= mask.reshape(mask.shape + (1,) * (weights.ndim - 2))
        output = ops.cast(output, "float64")
        total = total + ops.sum(ops.multiply(output, weights))
    return total


def value_and_gradients(function, variables):
    if BACKEND != "tensorflow":
        return loss_and_gradients(function, variables)
    import tensorflow as tf

    # Eager, because tracing a graph for one call would take longer.
    with tf.GradientTape() as tape:
        value = function()
    found = tape.gradient(
        value,
        [variable.value for variable in variables],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return float(value), [to_numpy(gradient) for gradient in found]


def assert_equal_in_both_modes(loss, variables):
    """Check that `loss(training)` and its gradients do not depend on mode."""
    value, found = value_and_gradients(lambda: loss(True), variables)
    other, expected = value_and_gradients(lambda: loss(False), variables)
    np.testing.assert_allclose(value, other, **TIGHT)
    for variable, one, two in zip(variables, found, expected, strict=True):
        np.testing.assert_allclose(one, two, err_msg=variable.path, **TIGHT)
    assert any(np.abs(gradient).max() > 1e-3 for gradient in found)


def variable(*shape, seed):
    return keras.Variable(random(*shape, seed=seed), dtype="float64")


# Public layers, as all tests of layers call them.


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize("name", LAYERS)
def test_public_layers(name):
    make, apply = LAYERS[name]
    layer = make("float64")
    query = variable(BATCH, STEPS, UNITS, seed=1)
    memory = variable(BATCH, SOURCE, UNITS, seed=2)
    masks = {"query_mask": STEP_MASK, "memory_mask": SOURCE_MASK}
    apply(layer, query + 0, memory + 0, **masks)
    randomize(layer)

    def loss(training):
        output = apply(InMode(layer, training), query + 0, memory + 0, **masks)
        real = None
        if output.shape[:2] == (BATCH, STEPS):
            real = STEP_MASK
        elif output.shape[:2] == (BATCH, SOURCE):
            real = SOURCE_MASK
        return weighted_sum([(output, real)])

    assert_equal_in_both_modes(loss, [query, memory, *layer.trainable_weights])


# Encoders: all outputs. Directions differ at the end of a sentence.

CLIPS = {"cell_clip": 0.4, "gradient_clip": 0.2}
ENCODERS = {
    "lstm": {},
    "lstm, cell clip": {"cell_clip": 0.4},
    "lstm, reversed, gradient clip": {"reverse": True, "gradient_clip": 0.2},
    "lstm, bidirectional": {"bidirectional": True},
    "lstm, bidirectional, clips": {"bidirectional": True, **CLIPS},
    "lstm, reversed": {"num_layers": 2, "reverse": True, "use_bias": False},
    "gru, bidirectional": {"recurrence": "gru", "bidirectional": True},
    "gru, reversed": {"recurrence": "gru", "reverse": True},
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "name", only_one_on_jax(ENCODERS, "lstm, bidirectional")
)
def test_encoders(name):
    encoder = lk.Encoder(UNITS, dtype="float64", **ENCODERS[name])
    inputs = variable(BATCH, SOURCE, 3, seed=1)
    encoder.build(inputs.shape)
    randomize(encoder)

    def loss(training):
        found = encoder(inputs + 0, mask=SOURCE_MASK, training=training)
        masks = [SOURCE_MASK] + [None] * (len(found) - 1)
        return weighted_sum(list(zip(found, masks, strict=True)))

    assert_equal_in_both_modes(loss, [inputs, *encoder.trainable_weights])


# Decoders: attentional vectors, alignments and last states.


def attention(kind, **options):
    return functools.partial(kind, dtype="float64", **options)


GENERAL = attention(lk.LuongAttention)
LOCAL = attention(lk.LocalAttention, half_width=2)
DECODERS = {
    "feeding": (lk.InputFeedingLSTM, GENERAL, {"num_layers": 2}),
    "feeding, cell clip": (
        lk.InputFeedingLSTM,
        LOCAL,
        {"cell_clip": 0.4, "attentional_bias": True},
    ),
    "feeding, gradient clip": (
        lk.InputFeedingLSTM,
        attention(lk.LuongAttention, score_mode="location", max_length=5),
        {"gradient_clip": 0.2, "use_bias": False},
    ),
    "no feeding, gradient clip": (
        lk.InputFeedingLSTM,
        GENERAL,
        {"input_feeding": False, "gradient_clip": 0.2, "num_layers": 2},
    ),
    "no attention, gradient clip": (
        lk.InputFeedingLSTM,
        None,
        {"input_feeding": False, "gradient_clip": 0.2, "num_layers": 2},
    ),
    "local-m": (
        lk.InputFeedingLSTM,
        attention(lk.LocalAttention, alignment="monotonic", half_width=1),
        {"cell_clip": 0.4, "gradient_clip": 0.2},
    ),
    "gated, no feeding": (
        lk.InputFeedingGRU,
        attention(lk.LuongAttention, score_mode="concat"),
        {"input_feeding": False},
    ),
    "Bahdanau": (
        lk.BahdanauLSTM,
        attention(lk.BahdanauAttention, normalize=True),
        {"cell_clip": 0.4, "gradient_clip": 0.2},
    ),
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "name", only_one_on_jax(DECODERS, "no attention, gradient clip")
)
def test_decoders(name):
    kind, attention, options = DECODERS[name]
    attended = attention is not None
    options = {**options, "attention": attention() if attended else None}
    decoder = kind(UNITS, return_state=True, dtype="float64", **options)
    inputs = variable(BATCH, STEPS, 3, seed=1)
    memory = variable(BATCH, SOURCE, 5, seed=2)
    states = [
        variable(BATCH, UNITS, seed=3 + i)
        for i in range(len(decoder.cell.state_size))
    ]
    decoder.build(inputs.shape, memory.shape if attended else None)
    randomize(decoder)

    def loss(training):
        reads = {}
        if attended:
            reads = {
                "memory": memory + 0,
                "memory_mask": SOURCE_MASK,
                "return_attention_scores": True,
            }
        found = decoder(
            inputs + 0,
            initial_state=[state + 0 for state in states],
            start_position=0,
            mask=STEP_MASK,
            training=training,
            **reads,
        )
        masks = [STEP_MASK] * (2 if attended else 1)
        masks += [None] * (len(found) - len(masks))
        return weighted_sum(list(zip(found, masks, strict=True)))

    assert_equal_in_both_modes(
        loss, [inputs, memory, *states, *decoder.trainable_weights]
    )


# Whole models, from ids to word losses.

SMALL = {
    "source_vocabulary_size": 11,
    "target_vocabulary_size": 9,
    "embedding_size": 5,
    "units": 6,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "dropout": 0.0,
    "initial_range": 0.8,
    "precision": "float64",
}
GLOBAL = AttentionConfig(kind="global")
BOTH_WAYS = {"bidirectional": True, "reverse_source": False}
MODELS = {
    "demo and small": {
        "attention": GLOBAL,
        "output_bias": True,
        "tied_embeddings": True,
        **BOTH_WAYS,
    },
    "authors": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "attention": AttentionConfig(
            alignment="monotonic", half_width=1, clamp_position=False
        ),
        "use_bias": False,
        "cell_clip": 0.3,
        "gradient_clip": 0.2,
        "dropout_style": "authors",
    },
    "clips without feeding": {
        "attention": GLOBAL,
        "input_feeding": False,
        "cell_clip": 0.3,
        "gradient_clip": 0.2,
        "decoder_layers": 2,
        **BOTH_WAYS,
    },
    "gated Bahdanau": {
        "attention": AttentionConfig(kind="global", score_mode="concat"),
        "recurrence": "gru",
        "decoder": "bahdanau",
        **BOTH_WAYS,
    },
    "no attention": {
        "attention": AttentionConfig(kind="none"),
        "encoder_layers": 2,
        "output_bias": True,
    },
}
WORDS = np.array([[4, 5, 6, 7, 8], [9, 0, 0, 0, 0], [7, 5, 4, 0, 0]], "int32")
TARGET_IN = np.array([[2, 4, 5, 6], [2, 7, 8, 0], [2, 0, 0, 0]], "int32")
TARGET_OUT = np.array([[4, 5, 6, 3], [7, 8, 3, 0], [3, 0, 0, 0]], "int32")


@pytest.mark.slow
@tensorflow
@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    config = ModelConfig(**{**SMALL, **MODELS[name]})
    model = TranslationModel(config).training_model
    batch = [WORDS, TARGET_IN, TARGET_OUT]

    def loss(training):
        outputs = model(batch, training=training)
        return weighted_sum([(outputs["word"], TARGET_OUT != 0)])

    assert_equal_in_both_modes(loss, model.trainable_weights)
    hits = [to_numpy(model(batch, training=mode)["hits"]) for mode in (1, 0)]
    np.testing.assert_array_equal(hits[0] > 0, hits[1] > 0)
