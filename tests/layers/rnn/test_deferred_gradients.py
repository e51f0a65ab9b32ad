"""Deferred gradients of the LSTM decoder against automatic ones."""

import itertools

import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras.layers.attention.scores import CONCAT_FORMS
from tests.layer_checks import (
    few_at_first,
    random,
    to_numpy,
)
from tests.layers.rnn.gradient_cases import (
    ATTENTIONS,
    CELLS,
    SOURCE_MASK,
    STEP_MASK,
    STEPS,
    UNITS,
    SquaredWeights,
    assert_equal,
    assert_half_is_near_single,
    local_attention,
)

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="torch differentiates the loop"
)
# Kinds of attention that no other fast test, here or of other cells, covers.
SOME = (
    *("cosine", "concat-joint", "location-3-False"),
    *("predictive-inside_softmax-5", "user-score-in-windows", "user-attention"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "attention",
    few_at_first(ATTENTIONS, SOME, ["cosine", "user-score-in-windows"]),
)
def test_every_attention(attention, float64):
    assert_equal(attention=attention, drop=STEPS)


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
            attention=local_attention(alignment, half_width=1),
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
    "cell",
    few_at_first(
        CELLS,
        ["three-layers", "no-biases", "cell-clip", "gradient-clip"],
        ["three-layers", "gradient-clip"],
    ),
)
@pytest.mark.parametrize(
    "attention", [pytest.param("general", marks=pytest.mark.slow), "none"]
)
def test_every_cell(attention, cell, float64):
    assert_equal(attention=attention, cell=cell)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell, masked, drop",
    few_at_first(
        itertools.product(
            ["plain", "no-feeding"], [False, True], [None, 1, STEPS]
        ),
        [
            ("plain", False, None),
            ("plain", True, STEPS),
            ("no-feeding", False, 1),
        ],
        [("plain", True, STEPS), ("no-feeding", True, 1)],
    ),
)
def test_masks_and_dropout(cell, masked, drop, float64):
    assert_equal(cell=cell, mask=STEP_MASK if masked else None, drop=drop)


@pytest.mark.slow
def test_loss_of_the_alignments(float64):
    assert_equal(with_alignments=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "score, options",
    few_at_first(
        [
            ("general", {}),
            ("dot", {}),
            ("location", {}),
            *(("concat", {"concat_form": form}) for form in CONCAT_FORMS),
        ],
        [
            ("general", {}),
            ("location", {}),
            ("concat", {"concat_form": "joint"}),
        ],
        [("general", {})],
    ),
)
def test_half_precision_stays_near_single(score, options):
    assert_half_is_near_single(
        lambda dtype: lk.InputFeedingLSTM(
            UNITS,
            attention=lk.LuongAttention(score, dtype=dtype, **options),
            dtype=dtype,
        ),
        memory_mask=SOURCE_MASK,
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
