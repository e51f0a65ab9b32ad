"""Outputs and gradients without dropout are equal in training and inference.

Compared are the outputs at all real positions of padded sentences, and their
gradients with respect to the inputs and all weights. The form of training of
other decoders and losses is tested in `layers/rnn` and `ops`.
"""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    BACKEND,
    LAYERS,
    UNITS,
    few_at_first,
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


@tensorflow
@pytest.mark.parametrize(
    "name", few_at_first(LAYERS, ("LuongAttention", "InputFeedingLSTM"))
)
def test_public_layers(name):
    make, apply = LAYERS[name]
    layer = make("float64")
    query = variable(BATCH, STEPS, UNITS, seed=1)
    memory = variable(BATCH, SOURCE, UNITS, seed=2)
    masks = {"query_mask": STEP_MASK, "memory_mask": SOURCE_MASK}
    real = {(BATCH, STEPS): STEP_MASK, (BATCH, SOURCE): SOURCE_MASK}
    apply(layer, query + 0, memory + 0, **masks)
    randomize(layer)

    def loss(training):
        output = apply(InMode(layer, training), query + 0, memory + 0, **masks)
        return weighted_sum([(output, real.get(tuple(output.shape[:2])))])

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
    "name",
    [
        pytest.param(
            name, marks=() if name == "lstm, bidirectional" else tensorflow
        )
        for name in ENCODERS
    ],
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
