"""Deferred gradients of other cells against automatic ones."""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.layers.rnn import attention_rnn
from luong_keras.layers.rnn.attention_cell import AttentionCell
from luong_keras.ops.products import product
from tests.layer_checks import (
    assert_near,
    few_at_first,
    few_on_jax,
    gradients,
    random,
)
from tests.layers.rnn.gradient_cases import (
    ATTENTIONS,
    CELLS,
    SOURCE_MASK,
    STEP_MASK,
    STEPS,
    UNITS,
    assert_equal,
    assert_half_is_near_single,
)

pytestmark = pytest.mark.skipif(
    keras.backend.backend() not in ("tensorflow", "jax"),
    reason="scans run on TensorFlow and JAX",
)


# User-defined cells, written without regard to the loop.


class Reset(AttentionCell):
    """A cell with weights that `product` reads, does not read, or both."""

    num_gates = 1
    states_per_layer = 1

    def build(self, inputs_shape, states_shape=None, memory_shape=None):
        super().build(inputs_shape, states_shape, memory_shape)
        for name in ("reset", "inner", "twice"):
            shape = (self.units, self.units)
            setattr(self, name, self.add_weight(name=name, shape=shape))

    def recurrence(self, weights, layer, projected, hidden):
        kernel = weights["recurrent_kernels"][layer]
        hidden = hidden * ops.sigmoid(ops.matmul(hidden, self.reset))
        inner = product(hidden, self.inner) + product(hidden, kernel)
        twice = product(hidden, self.twice) * ops.sum(self.twice)
        return [ops.tanh(projected + inner + twice)]


class Inner(AttentionCell):
    """A cell with a further weight that `product` reads."""

    num_gates = 1
    states_per_layer = 1

    def build(self, inputs_shape, states_shape=None, memory_shape=None):
        super().build(inputs_shape, states_shape, memory_shape)
        self.inner = self.add_weight(
            name="inner", shape=(self.units, self.units)
        )

    def recurrence(self, weights, layer, projected, hidden):
        kernel = weights["recurrent_kernels"][layer]
        inner = product(hidden, self.inner, product(hidden, kernel))
        return [(hidden + ops.tanh(projected + inner)) / 2]


class Coverage(lk.InputFeedingGRUCell):
    """A cell that feeds back attended positions and so reads the weights."""

    def step(self, *arguments):
        new, weights = super().step(*arguments)
        places = ops.cast(ops.arange(weights.shape[-1]), weights.dtype)
        seen = ops.sum(weights * places, axis=-1, keepdims=True)
        return [*new[:-1], new[-1] + seen], weights


def decoder_of(cell_class):
    def decoder(units, attention, dtype, deferred_gradients, return_state, **o):
        return lk.AttentionRNN(
            cell_class(units, attention=attention, dtype=dtype, **o),
            deferred_gradients=deferred_gradients,
            return_state=return_state,
            dtype=dtype,
        )

    return decoder


DECODERS = {
    "gru": lk.InputFeedingGRU,
    "bahdanau-gru": lk.BahdanauGRU,
    "bahdanau-lstm": lk.BahdanauLSTM,
    "relu": lambda *arguments, **options: lk.InputFeedingLSTM(
        *arguments, attentional_activation="relu", **options
    ),
    "reset": decoder_of(Reset),
    "coverage": decoder_of(Coverage),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, attention",
    few_at_first(
        [
            (decoder, attention)
            for decoder in ("gru", "bahdanau-gru")
            for attention in ATTENTIONS
            if (decoder, attention) != ("bahdanau-gru", "none")
        ],
        [
            ("gru", "location-3-False"),
            ("gru", "predictive-after_softmax-1"),
            ("bahdanau-gru", "bahdanau-normalized"),
            ("bahdanau-gru", "monotonic-renormalized-1"),
        ],
        [("gru", "concat-joint"), ("bahdanau-gru", "predictive-concat")],
    ),
)
def test_every_attention(decoder, attention, float64):
    assert_equal(decoder=DECODERS[decoder], attention=attention, drop=STEPS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, cell",
    few_at_first(
        [
            *(
                ("gru", cell)
                for cell in CELLS
                if cell not in ("cell-clip", "gradient-clip", "no-feeding")
            ),
            *(
                ("bahdanau-lstm", cell)
                for cell in CELLS
                if cell not in ("linear", "no-feeding")
            ),
            *(("relu", "cell-clip"), ("relu", "gradient-clip")),
            *(("reset", "plain"), ("coverage", "plain")),
            *(("reset", "three-layers"), ("reset", "no-biases")),
        ],
        [
            *(("gru", "three-layers"), ("gru", "attentional-bias")),
            *(("bahdanau-lstm", "gradient-clip"), ("relu", "cell-clip")),
            *(("reset", "plain"), ("coverage", "plain")),
        ],
        [("reset", "plain")],
    ),
)
def test_every_cell(decoder, cell, float64):
    assert_equal(decoder=DECODERS[decoder], cell=cell)


@pytest.mark.slow
@pytest.mark.parametrize(
    "drop", few_at_first([None, 1, STEPS], [None, STEPS], [STEPS])
)
def test_without_input_feeding(drop, float64):
    def decoder(*arguments, **options):
        return lk.InputFeedingGRU(*arguments, input_feeding=False, **options)

    assert_equal(decoder=decoder, drop=drop)


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, drop, padding",
    few_at_first(
        [
            (decoder, drop, padding)
            for decoder in ("gru", "bahdanau-gru", "reset")
            for drop in (None, 1)
            for padding in ("none", "left")
        ],
        [("gru", 1, "none"), ("bahdanau-gru", None, "left")],
        [("gru", 1, "left")],
    ),
)
@pytest.mark.parametrize(
    "attention",
    few_at_first(["general", "monotonic-after_softmax-1"], ["general"]),
)
def test_padding_and_alignments(decoder, drop, padding, attention, float64):
    left = padding == "left"
    assert_equal(
        decoder=DECODERS[decoder],
        attention=attention,
        mask=STEP_MASK[:, ::-1] if left else None,
        source_mask=SOURCE_MASK[:, ::-1] if left else None,
        drop=drop,
        with_alignments=True,
    )


def inner(units, dtype):
    return lk.AttentionRNN(Inner(units, dtype=dtype), dtype=dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder",
    few_on_jax([lk.InputFeedingGRU, lk.BahdanauGRU, inner], [inner]),
)
def test_half_precision_stays_near_single(decoder):
    assert_half_is_near_single(lambda dtype: decoder(UNITS, dtype=dtype))


# Work that is deferred until after the loop.


def products_in_loops(layer, width):
    """Return the shapes of all products in loops, forward and backward."""
    import tensorflow as tf

    inputs, memory = tf.ones((2, 3, width)), tf.ones((2, 6, width))
    layer.build(inputs.shape, memory.shape)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            vectors = layer(inputs, memory=memory, training=True)
            loss = tf.reduce_sum(vectors)
        return tape.gradient(loss, [v.value for v in layer.trainable_weights])

    graph = step.get_concrete_function().graph.as_graph_def(add_shapes=True)
    return {
        tuple(axis.size for axis in shape.dim)
        for function in graph.library.function
        if "while_body" in function.signature.name
        for node in function.node_def
        if node.op == "MatMul"
        for shape in node.attr["_output_shapes"].list.shape
    }


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "decoder, attention",
    [
        *(("gru", "general"), ("bahdanau-gru", "bahdanau")),
        *(("coverage", "general"), ("gru", "local-p"), ("gru", "concat")),
    ],
)
def test_no_step_computes_a_kernel_gradient(decoder, attention):
    options = {"attention": attention, "num_layers": 2, "dtype": "float32"}
    options["return_state"] = False

    def products(deferred):
        layer = DECODERS[decoder](7, deferred_gradients=deferred, **options)
        return products_in_loops(layer, 7)

    assert not {(7, 21), (7, 7), (7, 28)} & products("auto")
    assert (7, 21) in products(False)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.tensorflow
def test_second_derivatives_are_refused(in_graph):
    import tensorflow as tf

    inputs, memory = tf.ones((2, 3, 5)), tf.ones((2, 6, 4))

    def second(deferred):
        layer = lk.InputFeedingGRU(4, deferred_gradients=deferred)
        layer.build(inputs.shape, memory.shape)

        def derivative():
            with tf.GradientTape() as outer:
                outer.watch(inputs)
                with tf.GradientTape() as tape:
                    tape.watch(inputs)
                    vectors = layer(inputs, memory=memory, training=True)
                    loss = tf.reduce_sum(vectors)
                found = tf.reduce_sum(tape.gradient(loss, inputs))
            return outer.gradient(found, inputs)

        return (tf.function(derivative) if in_graph else derivative)()

    assert np.abs(second(False)).max() > 0
    with pytest.raises(NotImplementedError, match="deferred_gradients=False"):
        second("auto")


@pytest.mark.slow
@pytest.mark.tensorflow
def test_gradients_inside_a_map():
    encoder, decoder = lk.Encoder(4), lk.InputFeedingLSTM(4)
    losses = lk.WordLosses(lk.OutputProjection(7))
    batches = random(2, 2, 3, 4).astype("float32")

    def loss_of(batch):
        memory, *states = encoder(batch, training=True)
        vectors = decoder(batch, memory, states, training=True)
        words = np.array([[1, 2, 3], [4, 5, 6]])
        return ops.sum(losses(vectors, words, training=True)[0])

    loss_of(batches[0])
    variables = [
        variable
        for layer in (encoder, decoder, losses)
        for variable in layer.trainable_variables
    ]
    expected = gradients(lambda: sum(map(loss_of, batches)), variables)
    tensor = ops.convert_to_tensor(batches)
    found = gradients(lambda: ops.sum(ops.map(loss_of, tensor)), variables)
    assert_near(found, expected, 1e-5)


def test_other_backends_are_differentiated_automatically(monkeypatch):
    monkeypatch.setattr(attention_rnn, "BACKENDS", ())
    inputs, memory = random(2, 3, 5), random(2, 6, 4)
    lk.InputFeedingGRU(4)(inputs, memory=memory, training=True)
    with pytest.raises(ValueError, match="deferred_gradients=True"):
        layer = lk.InputFeedingGRU(4, deferred_gradients=True)
        layer(inputs, memory=memory)
