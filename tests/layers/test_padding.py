"""Left padding and gaps: equal results at other positions."""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    assert_all_close,
    few_on_jax,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    softmax,
    to_numpy,
)
from tests.layers.attentions import ATTENTIONS, attention_named, is_local

BATCH, STEPS, UNITS = 3, 4, 4
LENGTHS = [7, 4, 1]
EXACT = {"rtol": 1e-10, "atol": 1e-12}


def moved_right(rows, lengths, axis=1):
    """Move the first `lengths` entries on an axis of (B, ...) to its end."""
    size = rows.shape[axis]
    return np.stack(
        [
            np.roll(row, size - length, axis=axis - 1)
            for row, length in zip(rows, lengths, strict=True)
        ]
    )


def moved_left(rows, lengths, axis=1):
    """Undo `moved_right`."""
    size = rows.shape[axis]
    return moved_right(rows, [size - length for length in lengths], axis)


def both_sides(rows, lengths):
    """Return rows and masks, padded on the right and padded on the left.

    Padding is large, so that reading it changes the results.
    """
    mask = prefix_mask(lengths, rows.shape[1])
    rows = np.where(mask[..., None], rows, 50.0)
    left = moved_right(rows, lengths), moved_right(mask, lengths)
    return (rows, mask), left


@pytest.mark.slow_after_first
@pytest.mark.parametrize("source", [7, 90])
@pytest.mark.parametrize(
    "name",
    few_on_jax(
        ATTENTIONS, ["general", "location-9-True", "predictive-after_softmax-1"]
    ),
)
def test_attention_with_left_padding(name, source, float64):
    lengths = [source, *LENGTHS[1:]]
    sides = both_sides(random(BATCH, source, UNITS), lengths)
    query = random(BATCH, STEPS, UNITS, seed=1)
    layer = attention_named(name)
    randomize(layer, query.shape, sides[0][0].shape)
    drop = 2.0 * (random(BATCH, STEPS, source, seed=2) > 0)
    drops = drop, moved_right(drop, lengths, axis=2)

    def attend(side, drop):
        memory, mask = side
        return [
            to_numpy(x)
            for x in layer(
                query,
                memory,
                value_mask=mask,
                dropout_mask=drop,
                return_attention_scores=True,
            )
        ]

    expected = attend(sides[0], drops[0])
    context, weights = attend(sides[1], drops[1])
    assert not weights[~np.broadcast_to(sides[1][1][:, None], drop.shape)].any()
    np.testing.assert_allclose(context, expected[0], **EXACT)
    np.testing.assert_allclose(
        moved_left(weights, lengths, axis=2), expected[1], **EXACT
    )
    memory, mask = sides[1]
    for t in (0, STEPS - 1):  # a step of a search
        one = layer(
            query[:, t],
            memory,
            value_mask=mask,
            dropout_mask=drops[1][:, t],
            **({"position": t} if is_local(name) else {}),
        )
        np.testing.assert_allclose(one, context[:, t], **EXACT)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("source", [7, 90])
@pytest.mark.parametrize(
    "name",
    few_on_jax(
        [n for n in ATTENTIONS if "location" not in n and "positions" not in n],
        ["general", "monotonic-none-1"],
    ),
)
def test_self_attention_with_left_padding(name, source, float64):
    """Queries and memory are the same rows, and one mask serves both."""
    lengths = [source, *LENGTHS[1:]]
    right, left = both_sides(random(BATCH, source, UNITS), lengths)
    layer = attention_named(name)
    randomize(layer, right[0].shape, right[0].shape)
    expected, moved = (
        to_numpy(layer(rows, query_mask=mask)) for rows, mask in (right, left)
    )
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(moved_left(moved, lengths), expected, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["general", "monotonic-none-1", "location-9-True"]
)
@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("deferred", [True, False])
def test_decoder_with_left_padding(name, feeding, deferred, float64):
    """The inputs and the memory of a decoder may be padded on the left."""
    if deferred and keras.backend.backend() == "torch":
        pytest.skip("torch differentiates the loop")
    layer = lk.InputFeedingLSTM(
        UNITS,
        2,
        attention=attention_named(name),
        input_feeding=feeding,
        deferred_gradients=deferred,
        return_state=True,
        dtype="float64",
    )
    randomize(layer, (BATCH, STEPS, 5), (BATCH, 7, UNITS))
    memories = both_sides(random(BATCH, 7, UNITS), LENGTHS)
    steps = [4, 2, 3]
    inputs = both_sides(random(BATCH, STEPS, 5, seed=1), steps)
    weights = moved_right(random(BATCH, STEPS, UNITS, seed=2), steps)
    real = prefix_mask(steps, STEPS)

    def run(left):
        (read, mask), (memory, memory_mask) = inputs[left], memories[left]
        kept = moved_right(real, steps) if left else real
        scale = weights if left else moved_left(weights, steps)

        def call():
            return layer(
                read,
                mask=mask,
                memory=memory,
                memory_mask=memory_mask,
                return_attention_scores=True,
                training=True,
            )

        def loss():
            vectors, _, *states = call()
            used = ops.where(kept[..., None], vectors * scale, 0.0)
            return ops.sum(used) + ops.sum(states[0])

        _, gradients = loss_and_gradients(loss, layer.trainable_variables)
        vectors, alignments, *states = (to_numpy(x) for x in call())
        if left:
            vectors = moved_left(vectors, steps)
            alignments = moved_left(alignments, LENGTHS, axis=2)
            alignments = moved_left(alignments, steps)
        return vectors[real], alignments[real], *states, *gradients

    assert_all_close(run(True), run(False), **EXACT)


ENCODERS = {
    "forward": {},
    "reverse": {"reverse": True},
    "bidirectional": {"bidirectional": True},
    "two layers": {"bidirectional": True, "num_layers": 2},
    "gru": {"bidirectional": True, "recurrence": "gru"},
    "clipped": {"bidirectional": True, "cell_clip": 0.2},
    "reverse, clipped": {"reverse": True, "cell_clip": 0.2},
}


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", few_on_jax(ENCODERS, ["two layers"]))
def test_encoder_skips_gaps_and_padding(name, training, float64):
    layer = lk.Encoder(UNITS, dtype="float64", **ENCODERS[name])
    # Gaps, a sentence padded on the left, one on the right, one of a word.
    masks = ["010110", "001111", "111100", "000001"]
    masks = np.array([[word == "1" for word in mask] for mask in masks])
    rows = np.where(masks[..., None], random(4, 6, 5), 50.0)
    randomize(layer, rows.shape)
    memory, *states = layer(rows, mask=masks, training=training)
    for i, mask in enumerate(masks):
        dense = rows[i : i + 1, mask]
        expected, *last = layer(
            dense, mask=np.ones(dense.shape[:2], bool), training=training
        )
        np.testing.assert_allclose(
            to_numpy(memory)[i, mask], expected[0], **EXACT
        )
        found = [to_numpy(state)[i : i + 1] for state in states]
        assert_all_close(found, last, **EXACT)


def test_gap_keeps_its_position_in_a_window(float64):
    layer = lk.LocalAttention(
        "monotonic", half_width=1, score_mode="dot", dtype="float64"
    )
    mask = np.array([[0, 1, 0, 1, 1, 0, 0]], bool)
    query, memory = random(1, 5, 4), random(1, 7, 4, seed=1)
    _, weights = layer(
        query, memory, value_mask=mask, return_attention_scores=True
    )
    # Positions 0 ... 3 are at indices 1 ... 4, and index 2 is a gap.
    near = np.abs(np.arange(7) - 1 - np.minimum(np.arange(5), 3)[:, None]) <= 1
    expected = softmax(query[0] @ memory[0].T, near & mask[0])
    np.testing.assert_allclose(weights[0], expected, **EXACT)


@pytest.mark.slow_on_jax
def test_left_padding_by_keras_changes_nothing():
    """Sentences are padded by `pad_sequences` and masked by `mask_zero`."""
    sentences = [[4, 5, 6], [7], [8, 9]]
    embedding = keras.layers.Embedding(10, 4, mask_zero=True)
    encoder = lk.Encoder(6, bidirectional=True)
    attention = lk.LocalAttention("predictive", half_width=1)
    query = random(3, 2, 6).astype("float32")
    found = {}
    for side in ("pre", "post"):
        ids = keras.utils.pad_sequences(sentences, padding=side)
        memory, h, c = encoder(embedding(ids))
        found[side] = attention(query, memory), h, c
    assert_all_close(*found.values(), atol=1e-6)


@pytest.mark.parametrize("argument", ["mask", "inputs_mask"])
@pytest.mark.parametrize("layer", ["encoder", "decoder"])
@pytest.mark.parametrize("functional", [True, False])
def test_outputs_carry_an_explicit_mask(functional, layer, argument):
    source = random(2, 5, 3, seed=1)
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
    if layer == "encoder":
        reader = lk.Encoder(4, bidirectional=True)
    else:
        reader = lk.InputFeedingLSTM(4, attention=None, input_feeding=False)
    decoder = lk.InputFeedingLSTM(4)

    def weights(source, mask):
        outputs = reader(source, **{argument: mask})
        memory = outputs[0] if layer == "encoder" else outputs
        return decoder(source, memory=memory, return_attention_scores=True)[1]

    if functional:
        inputs = [keras.Input((5, 3)), keras.Input((5,), dtype="bool")]
        model = keras.Model(inputs, weights(*inputs))
        model = type(model).from_config(model.get_config())
        found = model([source, mask])
    else:
        found = weights(source, mask)
    used = to_numpy(found) > 0
    np.testing.assert_array_equal(used, np.repeat(mask[:, None], 5, axis=1))


@pytest.mark.slow_after_first
@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="torch trains with the loop of Keras",
)
@pytest.mark.parametrize(
    "layer",
    [
        lk.Encoder(UNITS, 2, bidirectional=False, reverse=False),
        lk.Encoder(UNITS, 2, bidirectional=True, reverse=False),
        lk.Encoder(UNITS, 2, reverse=True, recurrence="gru"),
        lk.Encoder(UNITS, 2, reverse=False, cell_clip=2.0),
        lk.InputFeedingLSTM(UNITS, attention=None, return_state=True),
    ],
)
def test_nan_in_padding_is_not_read(layer, float64):
    layer = type(layer).from_config({**layer.get_config(), "dtype": "float64"})
    randomize(layer, (BATCH, 7, 5))
    mask = prefix_mask(LENGTHS, 7)
    weights = np.where(mask[..., None], random(BATCH, 7, UNITS, seed=2), 0.0)
    rows = random(BATCH, 7, 5)

    def run(padding):
        x = keras.Variable(np.where(mask[..., None], rows, padding))

        def loss():
            memory, *states = layer(x + 0, mask=mask, training=True)
            states = sum(ops.sum(state) for state in states)
            return (
                ops.sum(ops.where(weights != 0, memory, 0) * weights) + states
            )

        value, gradients = loss_and_gradients(
            loss, [x, *layer.trainable_variables]
        )
        return value, *gradients

    assert_all_close(run(np.nan), run(0.0), **EXACT)
