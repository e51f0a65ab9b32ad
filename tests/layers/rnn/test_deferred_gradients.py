"""Deferred gradients of decoders against automatic ones."""

import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.layers.attention.scores import CONCAT_FORMS
from luong_keras.layers.rnn import attention_rnn
from luong_keras.layers.rnn.attention_cell import AttentionCell
from luong_keras.ops.products import product
from tests.layer_checks import (
    assert_near,
    gradients,
    random,
    randomize,
    to_numpy,
)
from tests.layers.attentions import ATTENTIONS, SquaredWeights
from tests.layers.rnn.gradient_cases import (
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
    reason="torch differentiates the loop",
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
    "lstm": lk.InputFeedingLSTM,
    "gru": lk.InputFeedingGRU,
    "gru without feeding": functools.partial(
        lk.InputFeedingGRU, input_feeding=False
    ),
    "bahdanau-gru": lk.BahdanauGRU,
    "bahdanau-lstm": lk.BahdanauLSTM,
    "relu": functools.partial(
        lk.InputFeedingLSTM, attentional_activation="relu"
    ),
    "reset": decoder_of(Reset),
    "coverage": decoder_of(Coverage),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, attention",
    [
        *itertools.product(["lstm", "gru", "bahdanau-gru"], ATTENTIONS),
        *itertools.product(["lstm", "gru"], ["none"]),
    ],
)
def test_every_attention(decoder, attention, float64):
    assert_equal(decoder=DECODERS[decoder], attention=attention, drop=STEPS)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
def test_windows_in_one_graph_of_short_and_long_sources(alignment, float64):
    # Gradients of windows of 3 words are added up in sources longer than 72.
    import tensorflow as tf

    def gradients(deferred):
        keras.utils.set_random_seed(0)
        layer = lk.InputFeedingLSTM(
            UNITS,
            attention=lk.LocalAttention(
                alignment, half_width=1, dtype="float64"
            ),
            deferred_gradients=deferred,
            dtype="float64",
        )
        layer.build((None, STEPS, UNITS), (None, None, UNITS))

        @tf.function(
            input_signature=[tf.TensorSpec((None, None, UNITS), tf.float64)] * 2
        )
        def memory_gradient(inputs, memory):
            with tf.GradientTape() as tape:
                tape.watch(memory)
                found = layer(inputs, memory=memory, training=True)
                loss = tf.reduce_sum(tf.sin(found))
            return tape.gradient(loss, memory)

        inputs = random(2, STEPS, UNITS)
        return [
            memory_gradient(inputs, random(2, source, UNITS, seed=1))
            for source in (6, 100)
        ]

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_continued_sequence(float64):
    attention = "monotonic-renormalized-1"
    assert_equal(attention=attention, start=np.array([1, 0, 2]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, cell, attention",
    [
        *itertools.product(["lstm"], CELLS, ["general", "none"]),
        *(
            ("gru", cell, "general")
            for cell in CELLS
            if cell not in ("cell-clip", "gradient-clip", "no-feeding")
        ),
        *(
            ("bahdanau-lstm", cell, "general")
            for cell in CELLS
            if cell not in ("linear", "no-feeding")
        ),
        *itertools.product(
            ["relu"], ["cell-clip", "gradient-clip"], ["general"]
        ),
        *itertools.product(
            ["reset"], ["plain", "three-layers", "no-biases"], ["general"]
        ),
        ("coverage", "plain", "general"),
    ],
)
def test_every_cell(decoder, cell, attention, float64):
    assert_equal(decoder=DECODERS[decoder], cell=cell, attention=attention)


@pytest.mark.slow
@pytest.mark.parametrize("drop", [None, 1, STEPS])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "decoder, cell",
    [
        ("lstm", "plain"),
        ("lstm", "no-feeding"),
        ("gru without feeding", "plain"),
    ],
)
def test_masks_and_dropout(decoder, cell, masked, drop, float64):
    mask = STEP_MASK if masked else None
    assert_equal(decoder=DECODERS[decoder], cell=cell, mask=mask, drop=drop)


@pytest.mark.slow
def test_loss_of_the_alignments(float64):
    assert_equal(with_alignments=True)


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["gru", "bahdanau-gru", "reset"])
@pytest.mark.parametrize("drop", [None, 1])
@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("attention", ["general", "monotonic-after_softmax-1"])
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


def scored(score, **options):
    return lambda units, dtype: lk.InputFeedingLSTM(
        units,
        attention=lk.LuongAttention(score, dtype=dtype, **options),
        dtype=dtype,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder, memory_mask",
    [
        *(
            (scored(score), SOURCE_MASK)
            for score in ("general", "dot", "location")
        ),
        *(
            (scored("concat", concat_form=form), SOURCE_MASK)
            for form in CONCAT_FORMS
        ),
        *((each, None) for each in (lk.InputFeedingGRU, lk.BahdanauGRU, inner)),
    ],
)
def test_half_precision_stays_near_single(decoder, memory_mask):
    assert_half_is_near_single(
        lambda dtype: decoder(UNITS, dtype=dtype), memory_mask=memory_mask
    )


@pytest.mark.slow
@pytest.mark.tensorflow
def test_model_with_deferred_gradients_is_exported(tmp_path):
    import tensorflow as tf

    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    memory, *states = lk.Encoder(4)(keras.layers.Embedding(9, 3)(source))
    vectors = lk.InputFeedingLSTM(4, attention=lk.LocalAttention())(
        keras.layers.Embedding(9, 3)(target),
        memory=memory,
        initial_state=states,
    )
    model = keras.Model([source, target], vectors)
    model.compile("sgd", "mse")
    words = np.ones((2, 5), "int32")
    model.fit([words, words], np.ones((2, 5, 4)), verbose=0)
    model.export(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    served = loaded.serve([words, words])
    np.testing.assert_allclose(served, model([words, words]), atol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="differentiates NumPy arrays"
)
def test_a_numpy_memory_is_differentiated():
    import jax

    layer = lk.InputFeedingLSTM(4)
    inputs, memory = random(2, 3, 5), random(2, 6, 3)
    layer.build(inputs.shape, memory.shape)

    def loss(memory):
        return layer(inputs, memory=memory, training=True).sum()

    np.testing.assert_allclose(
        jax.grad(loss)(memory), jax.grad(loss)(jax.numpy.array(memory))
    )


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="transformations of JAX"
)
@pytest.mark.slow_after_first
@pytest.mark.parametrize("transform", ["jit", "checkpoint"])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "losses"])
def test_a_transformed_function_is_differentiated(kind, transform):
    import jax

    inputs, memory = random(2, 3, 4), random(2, 6, 4)
    mask = np.arange(3) < [[3], [2]]
    if kind == "decoder":
        layer = lk.InputFeedingLSTM(4, attention="local-p")
        arguments = {"memory": memory, "mask": mask}
    elif kind == "encoder":
        layer, arguments = lk.Encoder(4), {"mask": mask}
    else:
        layer = lk.WordLosses(lk.OutputProjection(9))
        arguments = {"targets": np.array([[5, 3, 0], [7, 8, 3]])}
    layer(inputs, **arguments)
    variables = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]

    def loss(variables, inputs):
        outputs, _ = layer.stateless_call(
            variables, others, inputs, **arguments, training=True
        )
        return keras.tree.flatten(outputs)[0].sum()

    found = jax.grad(getattr(jax, transform)(loss), (0, 1))(variables, inputs)
    expected = jax.grad(loss, (0, 1))(variables, inputs)
    for x, y in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("run_eagerly", [True, False])
def test_a_decoder_in_a_remat_scope_trains_its_attention(run_eagerly):
    def trained_weights(mode):
        with keras.RematScope(mode=mode):
            decoder = lk.BahdanauGRU(4)
        inputs, memory = keras.Input((3, 5)), keras.Input((6, 4))
        model = keras.Model([inputs, memory], decoder(inputs, memory=memory))
        shapes = [weight.shape for weight in model.get_weights()]
        model.set_weights([random(*shape) for shape in shapes])
        model.compile("sgd", "mse", run_eagerly=run_eagerly)
        data = [random(2, 3, 5), random(2, 6, 4)]
        model.fit(data, np.ones((2, 3, 4)), verbose=0)
        return model.get_weights()

    for x, y in zip(*map(trained_weights, ("full", None)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_attention_in_mixed_precision_is_that_of_the_loop():
    attention = lk.LuongAttention("location", dtype="mixed_bfloat16")
    layer = lk.InputFeedingLSTM(4, attention=attention)
    inputs, memory = random(2, 3, 5), random(2, 6, 4)
    layer(inputs, memory=memory)
    randomize(layer)
    found, expected = (
        to_numpy(layer(inputs, memory=memory, training=training))
        for training in (True, False)
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_unknown_deferred_gradients_are_refused():
    with pytest.raises(ValueError, match="deferred_gradients='fast'"):
        lk.InputFeedingLSTM(4, deferred_gradients="fast")


def test_attention_subclass_keeps_its_own_weights():
    layer = lk.InputFeedingLSTM(
        4, attention=SquaredWeights("dot"), deferred_gradients=True
    )
    memory = random(2, 6, 4)
    _, weights = layer(
        random(2, 3, 5),
        memory=memory,
        return_attention_scores=True,
        training=True,
    )
    plain = lk.InputFeedingLSTM(4, attention=lk.LuongAttention("dot"))
    plain.build((2, 3, 5), memory.shape)
    plain.set_weights(layer.get_weights())
    _, plain_weights = plain(
        random(2, 3, 5), memory=memory, return_attention_scores=True
    )
    assert np.abs(to_numpy(weights) - to_numpy(plain_weights)).max() > 1e-3


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
