"""Rounding errors of every layer in half precision, against float32.

The format represents inputs and weights exactly, so that only computed values
are rounded. Errors are relative to the largest absolute value of an array.
"""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.ops import windows
from tests.layer_checks import (
    LAYERS,
    ROUNDOFF,
    UNITS,
    assert_near,
    few_at_first,
    few_on_jax,
    loss_and_gradients,
    prefix_mask,
    random,
    round_weights,
    rounded,
    to_numpy,
    weighted_sum,
)

STEPS = 4
QUERY_MASK = prefix_mask([4, 3, 4, 2], STEPS)
# A step rounds its query, the weights, the context and the vector, or their
# gradients, and all of these errors may add up.
ROUNDINGS = 4 * STEPS
SOURCE_LENGTHS = dict.fromkeys(LAYERS, 600) | {
    # Rounding errors of earlier steps shift a predicted position, by a larger
    # share of its Gaussian in a longer source.
    "InputFeedingLSTM": 20,
    # The gradients of the scores of a query sum to zero, so that the gradient
    # of the shared bias is small and its relative error large.
    "BahdanauAttention normalized": 20,
}


def results(name, policy, dtype, side):
    """Return the output and the gradients of inputs and weights."""
    make, apply = LAYERS[name]
    layer, length = make(policy), SOURCE_LENGTHS[name]
    # A full sentence, a shorter one, one of a single word and an empty one.
    mask = prefix_mask([length, length - 3, 1, 0], length)
    mask = mask[:, ::-1] if side == "left" else mask
    inputs = [
        keras.Variable(rounded(random(4, length, UNITS, seed=length), dtype))
        for length in (STEPS, length)
    ]

    def output():
        query, memory = (ops.cast(x, layer.compute_dtype) for x in inputs)
        found = apply(
            layer, query, memory, query_mask=QUERY_MASK, memory_mask=mask
        )
        return ops.cast(found, "float32")

    upstream = random(*output().shape, seed=2)
    round_weights(layer, dtype)
    _, gradients = loss_and_gradients(
        lambda: weighted_sum(output(), upstream),
        [*inputs, *layer.trainable_variables],
    )
    return [to_numpy(output()), *gradients]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "dtype, side", [("float16", "right"), ("bfloat16", "left")]
)
@pytest.mark.parametrize(
    "name",
    few_at_first(
        LAYERS,
        ("LuongAttention", "LocalAttention predictive", "OutputProjection"),
    ),
)
def test_layer_is_a_few_roundings_from_float32(name, dtype, side):
    half, single = (
        results(name, policy, dtype, side)
        for policy in (f"mixed_{dtype}", "float32")
    )
    assert_near(half, single, ROUNDINGS * ROUNDOFF[dtype])


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "dtype", few_on_jax(["float16", "bfloat16"], ["bfloat16"])
)
def test_position_weights_are_not_rounded(dtype):
    """Position weights are float32, as in training; the others are rounded."""
    query = rounded(random(2, STEPS, 16), dtype)
    memory = rounded(random(2, 600, 16, seed=1), dtype)
    found = []
    for policy in (f"mixed_{dtype}", "float32"):
        layer = lk.LocalAttention("predictive", dtype=policy)
        round_weights(layer, dtype, query.shape, memory.shape)
        for weight in (layer.position_kernel, layer.position_vector):
            weight.assign(0.3 * random(*weight.shape, seed=4))
        found.append(
            map(to_numpy, layer(query, memory, return_attention_scores=True))
        )
    # The projected query, scores, weights and context are rounded.
    assert_near(*found, 4 * ROUNDOFF[dtype])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_positions_of_layers_in_half_precision_are_those_of_float32(dtype):
    query = rounded(random(2, STEPS, 16), dtype)
    memory = rounded(random(2, 600, 16, seed=1), dtype)
    positions = []
    for policy in (dtype, "float32"):
        layer = lk.LocalAttention("predictive", dtype=policy)
        round_weights(layer, dtype, query.shape, memory.shape)
        positions.append(layer.window(query, memory).aligned_position)
    np.testing.assert_allclose(*map(to_numpy, positions), atol=0.01)


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "dtype", few_on_jax(["float16", "bfloat16"], ["float16"])
)
def test_long_source_loses_precision_only_in_its_positions(dtype, monkeypatch):
    """With the positions of float32, half precision is close to float32.

    p_t = S sigmoid(...) moves up to S / 4 times as far as its logit, which has
    the rounding errors of all earlier steps. At S = 600 that changes the
    position, and the slope of the Gaussian, by a noticeable fraction.
    """
    float32_positions = []
    predict = windows.predictive_position

    def recorded(*arguments):
        float32_positions.append(predict(*arguments))
        return float32_positions[-1]

    def frozen(*arguments):
        position = predict(*arguments)
        correction = ops.stop_gradient(
            ops.cast(float32_positions[0], position.dtype) - position
        )
        return position + correction

    inputs = rounded(random(3, STEPS, 5), dtype)
    memory = rounded(random(3, 600, 16, seed=1), dtype)
    upstream = random(3, STEPS, 16, seed=2)

    def decoder(policy):
        attention = lk.LocalAttention("predictive", dtype=policy)
        cell = lk.InputFeedingLSTMCell(
            16, attention=attention, input_feeding=False, dtype=policy
        )
        layer = lk.AttentionRNN(cell, dtype=policy)
        return round_weights(layer, dtype, inputs.shape, memory.shape)

    def found(policy):
        layer = decoder(policy)

        def vectors():
            vectors = layer(inputs, memory=memory, training=True)
            return ops.cast(vectors, "float32")

        _, gradients = loss_and_gradients(
            lambda: weighted_sum(vectors(), upstream),
            layer.trainable_variables,
        )
        return [to_numpy(vectors()), *gradients]

    monkeypatch.setattr(windows, "predictive_position", recorded)
    decoder("float32")(inputs, memory=memory)
    monkeypatch.setattr(windows, "predictive_position", frozen)
    half, single = map(found, (f"mixed_{dtype}", "float32"))
    # A step of a decoder also rounds two products of its recurrence.
    assert_near(half, single, 6 * STEPS * ROUNDOFF[dtype])


SCORES = {
    **{
        mode: lambda dtype, mode=mode: lk.LuongAttention(mode, dtype=dtype)
        for mode in ("dot", "scaled_dot", "cosine", "general", "location")
    },
    "local": lambda dtype: lk.LocalAttention(
        "monotonic", 3, "dot", dtype=dtype
    ),
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("masked", few_on_jax([True, False], [True]))
@pytest.mark.parametrize("name", SCORES)
def test_scores_may_exceed_the_float16_range(name, masked):
    """1,000 products of 30 and 30 sum to 900,000; float16 ends at 65,504."""
    source = 20
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (3, source, 1000))
    memory = (30 * signs).astype("float32")
    mask = prefix_mask([source, 5, 0], source) if masked else None
    found = []
    for dtype in ("mixed_float16", "float32"):
        layer = SCORES[name](dtype)
        query = keras.Variable(memory[:, 3:6])
        layer.build(query.shape, memory.shape)
        for weight in layer.weights:
            values = 0.05 * random(*weight.shape)
            weight.assign(rounded(values, "float16"))

        def attend(layer=layer, query=query):
            return layer(
                query + 0,
                memory,
                value_mask=mask,
                return_attention_scores=True,
            )

        _, gradients = loss_and_gradients(
            lambda attend=attend: weighted_sum(
                ops.cast(attend()[0], "float32"), random(3, 3, 1000)
            ),
            [query, *layer.trainable_variables],
        )
        # Gradients are almost zero: the weights of the softmax are 0 or 1.
        assert all(np.isfinite(gradient).all() for gradient in gradients)
        found.append([*map(to_numpy, attend())])
    # Query, keys, weights and context are rounded.
    assert_near(*found, 4 * ROUNDOFF["float16"])
    assert not masked or not found[0][0][2].any()


@pytest.mark.parametrize("decoder", ["layer", "cell"])
def test_symbolic_alignments_have_the_dtype_of_the_attention(decoder):
    attention = lk.LocalAttention(half_width=1)
    options = {"attention": attention, "dtype": "mixed_bfloat16"}
    memory, more = random(2, 5, UNITS), {"return_attention_scores": True}
    if decoder == "layer":
        layer, inputs = lk.InputFeedingLSTM(UNITS, **options), random(2, 3, 4)
    else:
        layer, inputs = lk.InputFeedingLSTMCell(UNITS, **options), random(2, 4)
        more["states"] = [np.zeros((2, size)) for size in layer.state_size]
    found = layer(inputs, memory=memory, **more)
    symbols = keras.tree.map_structure(
        lambda x: (
            keras.KerasTensor(x.shape, x.dtype) if hasattr(x, "shape") else x
        ),
        {"inputs": inputs, "memory": memory, **more},
    )
    expected = layer(symbols.pop("inputs"), **symbols)
    for alignments in (found[-1], expected[-1]):
        assert keras.backend.standardize_dtype(alignments.dtype) == "float32"


@pytest.mark.parametrize("kind", [lk.InputFeedingLSTM, lk.InputFeedingGRU])
def test_the_dtype_of_a_model_changes_no_decoder(kind):
    # Keras casts the variables of a decoder, which has no autocast, only if the
    # model around it casts none.
    decoder = kind(64, bias_initializer="random_normal", dtype="mixed_bfloat16")
    arrays = [random(2, STEPS, UNITS, seed=seed) for seed in (1, 2)]

    class Model(keras.Model):
        def call(self, inputs):
            return decoder(inputs[0], memory=inputs[1])

    outer, inner = (
        to_numpy(Model(dtype=dtype)(arrays))
        for dtype in ("mixed_bfloat16", "float32")
    )
    np.testing.assert_array_equal(outer, inner)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("decoder", ["layer", "cell"])
def test_given_states_are_not_rounded(decoder, kind):
    cell = lk.InputFeedingLSTMCell(UNITS, dtype="mixed_bfloat16")
    layer = lk.AttentionRNN(cell, return_state=True, dtype="mixed_bfloat16")
    inputs, memory = random(2, 1, UNITS), random(2, 5, UNITS, seed=1)
    states = [random(2, UNITS, seed=seed).astype(kind) for seed in range(3)]

    def memory_cell(change):
        given = [states[0], states[1] + change, states[2]]
        if decoder == "layer":
            return layer(inputs, memory=memory, initial_state=given)[2]
        return layer.cell(inputs[:, 0], given, memory=memory)[1][1]

    layer(inputs, memory=memory)
    difference = to_numpy(memory_cell(2e-4)) - to_numpy(memory_cell(0))
    # The share of the forget gate; bfloat16 would change by 0 or 0.004 of 1.
    assert (difference > 1e-6).all() and (difference < 2.1e-4).all()
