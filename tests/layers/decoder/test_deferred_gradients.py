"""The hand-written backward loops against automatic differentiation."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.layers.attention.score import Score
from luong_keras.layers.decoder.lstm_sequence import lstm_sequence
from luong_keras.ops.recurrence import lstm_step
from tests.layer_checks import (
    few_at_first,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    to_numpy,
    weighted_sum,
)

BATCH, STEPS, SOURCE, UNITS = 3, 4, 7, 4
STEP_MASK = prefix_mask([4, 2, 3], STEPS)
SOURCE_MASK = prefix_mask([7, 4, 1], SOURCE)
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def global_attention(score_mode="general", **options):
    return lk.LuongAttention(score_mode, dtype="float64", **options)


def local_attention(alignment, **options):
    return lk.LocalAttention(alignment, dtype="float64", **options)


# Scores and attentions of a user's own.


class Distance(Score):
    """Not linear in the query, and with a weight."""

    def build(self, add_weight, query_shape, value_shape):
        self.sharpness = add_weight("sharpness", (query_shape[-1],))

    def __call__(self, query, keys):
        difference = ops.expand_dims(query, 2) - ops.expand_dims(keys, 1)
        return -ops.sum(ops.square(difference) * self.sharpness, axis=-1)


class Positions(Score):
    """Scores of positions that look at the query alone."""

    by_position = True

    def build(self, add_weight, query_shape, value_shape):
        self.kernel = add_weight("kernel", (query_shape[-1], 5))

    def __call__(self, query, keys):
        return ops.tanh(ops.matmul(query, self.kernel))


class Doubled(lk.LuongAttention):
    """An attention that is more than its score."""

    def _weights(self, query, value, value_mask, keys):
        weights = super()._weights(query, value, value_mask, keys)
        return weights * weights


ATTENTIONS = {
    "none": lambda: None,
    "dot": lambda: global_attention("dot"),
    "scaled_dot": lambda: global_attention("scaled_dot", use_scale=True),
    "cosine": lambda: global_attention("cosine", use_scale=True),
    "general": global_attention,
    **{
        f"concat-{form}": lambda form=form: global_attention(
            "concat", concat_form=form, use_scale=True
        )
        for form in ("joint", "separate", "query_only")
    },
    **{
        f"location-{length}-{mask}": lambda length=length, mask=mask: (
            global_attention(
                "location",
                max_length=length,
                mask_location=mask,
                use_scale=True,
            )
        )
        for length in (3, 9)
        for mask in (True, False)
    },
    **{
        f"{alignment}-{gaussian}-{width}": (
            lambda alignment=alignment, gaussian=gaussian, width=width: (
                local_attention(alignment, gaussian=gaussian, half_width=width)
            )
        )
        for alignment in ("monotonic", "predictive")
        for gaussian in (
            "after_softmax",
            "renormalized",
            "inside_softmax",
            "none",
        )
        for width in (1, 5)
    },
    "predictive-concat": lambda: local_attention(
        "predictive", half_width=2, score_mode="concat"
    ),
    "monotonic-unclamped": lambda: local_attention(
        "monotonic", half_width=1, clamp_position=False
    ),
    "bahdanau": lambda: lk.BahdanauAttention(dtype="float64"),
    "bahdanau-normalized": lambda: lk.BahdanauAttention(
        normalize=True, dtype="float64"
    ),
    "own-score": lambda: global_attention(Distance(), use_scale=True),
    "own-positions": lambda: global_attention(Positions()),
    "own-score-in-windows": lambda: local_attention(
        "predictive", half_width=1, score_mode=Distance()
    ),
    "own-attention": lambda: Doubled("general", dtype="float64"),
}

CELLS = {
    "plain": {},
    "one-layer": {"num_layers": 1},
    "three-layers": {"num_layers": 3},
    "no-biases": {"use_bias": False},
    "attentional-bias": {"attentional_bias": True},
    "linear": {"attentional_activation": "linear"},
    "cell-clip": {"cell_clip": 0.5},
    "gradient-clip": {"gradient_clip": 0.1},
    "no-feeding": {"input_feeding": False, "cell_clip": 0.5},
}


def results(
    deferred,
    attention="general",
    cell="plain",
    mask=STEP_MASK,
    drop=None,
    with_alignments=False,
):
    """Loss, and the gradients of every weight, state and input."""
    layer = lk.InputFeedingLSTM(
        UNITS,
        attention=ATTENTIONS[attention](),
        deferred_gradients=deferred,
        return_state=True,
        dtype="float64",
        **{"num_layers": 2, **CELLS[cell]},
    )
    memory = keras.Variable(random(BATCH, SOURCE, UNITS), dtype="float64")
    inputs = keras.Variable(random(BATCH, STEPS, 5, seed=1), dtype="float64")
    states = [
        keras.Variable(random(BATCH, UNITS, seed=2 + i), dtype="float64")
        for i in range(len(layer.cell.state_size))
    ]
    attended = layer.cell.attention is not None
    layer.build(inputs.shape, memory.shape if attended else None)
    randomize(layer)
    masks = {} if drop is None else dropout_masks(layer.cell, drop)

    def loss():
        attends = {}
        if attended:
            attends = {"memory": memory + 0, "memory_mask": SOURCE_MASK}
        found = layer(
            inputs + 0,
            initial_state=[state + 0 for state in states],
            mask=mask,
            dropout_masks=masks,
            return_attention_scores=with_alignments,
            training=True,
            **attends,
        )
        return sum(
            weighted_sum(x, random(*x.shape, seed=20 + i))
            for i, x in enumerate(found)
        )

    variables = [inputs, *states, *layer.trainable_variables]
    return loss_and_gradients(
        loss, [*variables, memory] if attended else variables
    )


def dropout_masks(cell, steps):
    shapes = cell.dropout_mask_shapes(BATCH, steps, SOURCE, 5)
    shapes["outputs"] = (steps, BATCH, UNITS)
    if cell.attention is not None:
        shapes["attention"] = (steps, BATCH, SOURCE)
    return {
        name: 2.0 * (random(*shape, seed=i) > 0)
        for i, (name, shape) in enumerate(shapes.items())
    }


def assert_equal(**options):
    by_hand, found = results(True, **options)
    automatic, expected = results(False, **options)
    np.testing.assert_allclose(by_hand, automatic, **TIGHT)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **TIGHT)


# One of each kind.
SOME = (
    *("none", "cosine", "concat-joint", "location-3-False", "bahdanau"),
    *("monotonic-renormalized-1", "predictive-inside_softmax-5"),
    *("own-score-in-windows", "own-attention"),
)


@pytest.mark.parametrize(
    "attention",
    few_at_first(ATTENTIONS, SOME, ["cosine", "own-score-in-windows"]),
)
def test_every_attention(attention, float64):
    assert_equal(attention=attention, drop=STEPS)


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


@pytest.mark.parametrize(
    "cell, masked, drop",
    few_at_first(
        itertools.product(
            ["plain", "no-feeding"], [False, True], [None, 1, STEPS]
        ),
        [
            ("plain", False, None),
            ("plain", True, 1),
            ("plain", True, STEPS),
            ("no-feeding", False, 1),
            ("no-feeding", True, STEPS),
        ],
        [("plain", True, STEPS), ("no-feeding", True, 1)],
    ),
)
def test_masks_and_dropout(cell, masked, drop, float64):
    assert_equal(cell=cell, mask=STEP_MASK if masked else None, drop=drop)


def test_a_loss_of_the_alignments(float64):
    assert_equal(with_alignments=True)


@pytest.mark.parametrize("mask", [None, STEP_MASK])
def test_an_lstm_layer_alone(mask, float64):
    arrays = [
        keras.Variable(random(*shape, seed=i), dtype="float64")
        for i, shape in enumerate(
            [(STEPS, BATCH, 4 * UNITS), (BATCH, UNITS), (BATCH, UNITS)]
            + [(UNITS, 4 * UNITS)]
        )
    ]

    def stepwise(projected, hidden, carry, kernel):
        hiddens = []
        for t in range(STEPS):
            new = lstm_step(projected[t], hidden, carry, kernel)
            if mask is not None:
                keep = mask[:, t, None]
                new = [
                    ops.where(keep, n, o)
                    for n, o in zip(new, (hidden, carry), strict=True)
                ]
            hidden, carry = new
            hiddens.append(hidden)
        return ops.stack(hiddens), hidden, carry

    def at_once(*arrays):
        return lstm_sequence(
            *arrays, mask=None if mask is None else np.transpose(mask)
        )

    def loss(run):
        found = run(*(x + 0 for x in arrays))
        return sum(
            weighted_sum(x, random(*x.shape, seed=20 + i))
            for i, x in enumerate(found)
        )

    by_hand, found = loss_and_gradients(lambda: loss(at_once), arrays)
    automatic, expected = loss_and_gradients(lambda: loss(stepwise), arrays)
    np.testing.assert_allclose(by_hand, automatic, **TIGHT)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **TIGHT)


def test_half_precision_stays_near_single(float64):
    def vectors(dtype):
        layer = lk.InputFeedingLSTM(
            UNITS, attention=lk.LuongAttention(dtype=dtype), dtype=dtype
        )
        memory = random(BATCH, SOURCE, UNITS).astype("float32")
        inputs = random(BATCH, STEPS, 5).astype("float32")
        layer.build(inputs.shape, memory.shape)
        randomize(layer)

        def loss():
            found = layer(
                inputs, memory=memory, memory_mask=SOURCE_MASK, training=True
            )
            return ops.sum(ops.cast(found, "float32"))

        return loss_and_gradients(loss, layer.trainable_variables)

    half, gradients = vectors("mixed_bfloat16")
    single, expected = vectors("float32")
    np.testing.assert_allclose(half, single, rtol=0.05, atol=0.2)
    for one, other in zip(gradients, expected, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one / scale, other / scale, atol=0.1)


# Which cells have a loop of their own.


@pytest.mark.parametrize(
    "cell",
    [
        lambda: lk.InputFeedingGRUCell(4, attention=lk.LuongAttention()),
        lambda: lk.BahdanauLSTMCell(4, attention=lk.LuongAttention()),
        lambda: lk.InputFeedingLSTMCell(
            4, attention=lk.LuongAttention(), attentional_activation="relu"
        ),
    ],
)
def test_other_cells_are_differentiated_automatically(cell):
    inputs, memory = random(2, 3, 5), random(2, 6, 4)
    lk.MemoryRNN(cell())(inputs, memory=memory)
    with pytest.raises(ValueError, match="deferred_gradients=True"):
        lk.MemoryRNN(cell(), deferred_gradients=True)(inputs, memory=memory)


@pytest.mark.tensorflow
def test_a_model_of_them_is_exported(tmp_path):
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


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="deferred_gradients='fast'"):
        lk.InputFeedingLSTM(4, deferred_gradients="fast")


def test_an_attention_of_a_subclass_keeps_what_it_computes():
    layer = lk.InputFeedingLSTM(
        4, attention=Doubled("dot"), deferred_gradients=True
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
    _, others = plain(
        random(2, 3, 5), memory=memory, return_attention_scores=True
    )
    assert np.abs(to_numpy(weights) - to_numpy(others)).max() > 1e-3
