"""Decoders for the comparison of deferred with automatic gradients."""

import keras
import numpy as np
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    ROUNDOFF,
    assert_all_close,
    assert_near,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    round_weights,
    rounded,
    rounding_of_products,
    to_numpy,
    weighted_sum,
)
from tests.layers.attentions import attention_named

BATCH, STEPS, SOURCE, UNITS = 3, 4, 7, 4
STEP_MASK = prefix_mask([4, 2, 3], STEPS)
SOURCE_MASK = prefix_mask([7, 4, 1], SOURCE)
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


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
    source_mask=SOURCE_MASK,
    decoder=lk.InputFeedingLSTM,
    start=0,
):
    """Return the loss and the gradients of every weight, state and input."""
    layer = decoder(
        UNITS,
        attention=None if attention == "none" else attention_named(attention),
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
    randomize(layer, inputs.shape, memory.shape if attended else None)
    masks = {} if drop is None else dropout_masks(layer.cell, drop)

    def loss():
        memory_options = {}
        if attended:
            memory_options = {"memory": memory + 0, "memory_mask": source_mask}
        found = layer(
            inputs + 0,
            initial_state=[state + 0 for state in states],
            start_position=start,
            mask=mask,
            dropout_masks=masks,
            return_attention_scores=with_alignments,
            training=True,
            **memory_options,
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
    return {
        name: 2.0 * (random(*shape, seed=i) > 0)
        for i, (name, shape) in enumerate(shapes.items())
    }


def assert_equal(**options):
    deferred, found = results(True, **options)
    automatic, expected = results(False, **options)
    np.testing.assert_allclose(deferred, automatic, **TIGHT)
    assert_all_close(found, expected, **TIGHT)


def assert_half_is_near_single(make, **arguments):
    """Compare mixed bfloat16 with float32, from equal inputs and weights.

    bfloat16 represents these exactly, so that only computed values are
    rounded: the vector of each step, whose entries are at most 1, once between
    steps, and its gradient once more. All of these errors may add up.
    """
    roundoff = ROUNDOFF["bfloat16"] * rounding_of_products("bfloat16")
    tolerance = STEPS * roundoff
    inputs = rounded(random(BATCH, STEPS, 5), "bfloat16")
    memory = rounded(random(BATCH, SOURCE, UNITS), "bfloat16")

    def found(dtype):
        layer = make(dtype)
        round_weights(layer, "bfloat16", inputs.shape, memory.shape)

        def vectors():
            found = layer(inputs, memory=memory, training=True, **arguments)
            return ops.cast(found, "float32")

        _, gradients = loss_and_gradients(
            lambda: ops.sum(vectors()), layer.trainable_variables
        )
        return to_numpy(vectors()), gradients

    (half, gradients), (single, expected) = map(
        found, ("mixed_bfloat16", "float32")
    )
    np.testing.assert_allclose(half, single, rtol=0, atol=tolerance)
    assert_near(gradients, expected, 2 * tolerance)
