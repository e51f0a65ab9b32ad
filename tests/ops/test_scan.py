"""Scans with rematerialised steps against unrolled steps."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import InputFeedingGRU
from luong_keras.ops import products
from luong_keras.ops.products import product
from luong_keras.ops.scan import scan
from tests.layer_checks import assert_all_close, loss_and_gradients, random

pytestmark = pytest.mark.skipif(
    keras.backend.backend() not in ("tensorflow", "jax"),
    reason="scans run on TensorFlow and JAX",
)
STEPS, BATCH, UNITS = 4, 3, 2


def step(parameters, states, given, x):
    """Run a step with weights that `product` reads, does not read, or both."""
    kernel, bias, scale, twice = parameters
    hidden, total = states
    inner = product(hidden, kernel, bias) * scale + given
    inner = inner + product(hidden, twice) * ops.sum(twice) * x["weight"]
    hidden = ops.tanh(inner)
    return [hidden, total + product(hidden, kernel)]


def unrolled(step, parameters, states, inputs, xs, outputs):
    sequences = []
    for t in range(STEPS):
        x = {name: each[t] for name, each in xs.items()}
        states = step(parameters, states, inputs[t], x)
        sequences.append([states[i] for i in outputs])
    return states, [ops.stack(each) for each in zip(*sequences, strict=True)]


def weighted_total(last, sequences):
    """Sum all results with random weights, so that each has a gradient."""
    return sum(
        ops.sum(x * random(*x.shape, seed=20 + i))
        for i, x in enumerate([*last, *sequences])
    )


def assert_equal_gradients(loss, by_scan, by_steps, variables):
    value, found = loss_and_gradients(lambda: loss(by_scan), variables)
    same, expected = loss_and_gradients(lambda: loss(by_steps), variables)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    assert_all_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("outputs", [[0], [1, 0]])
def test_gradients_equal_those_of_unrolled_steps(outputs, float64):
    square, row = (UNITS, UNITS), (BATCH, UNITS)
    shapes = [square, (UNITS,), (UNITS,), square, row, row]
    variables = [
        keras.Variable(random(*shape, seed=i), dtype="float64")
        for i, shape in enumerate([*shapes, (STEPS, *row)])
    ]
    xs = {"weight": ops.convert_to_tensor(random(STEPS, 1, 1, seed=9))}

    def loss(loop):
        *parameters, first, second, inputs = [v + 0 for v in variables]
        return weighted_total(
            *loop(step, parameters, [first, second], inputs, xs, outputs)
        )

    assert_equal_gradients(loss, scan, unrolled, variables)


@pytest.mark.tensorflow
def test_a_tape_may_compute_gradients_twice():
    import tensorflow as tf

    decoder = InputFeedingGRU(UNITS, attention="local-p")
    inputs = tf.constant(random(BATCH, STEPS, 5))
    memory = random(BATCH, 6, UNITS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(decoder(inputs, memory=memory, training=True))
    first, second = (tape.gradient(total, inputs) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.any(first)


# Rows shared by all steps.

WIDTH = 3


def attending_step(parameters, states, given, x):
    """Read windows, whole rows, a kernel view, and rows without a product."""
    keys, values, kernel = parameters
    (hidden,) = states
    query = product(hidden, kernel, given, view=ops.transpose)[:, None]
    positions = x["first"] + ops.arange(WIDTH, dtype="int32")
    near_keys = products.gather_windows(keys, positions)
    near = products.weighted_sums(
        products.dots(query, near_keys),
        products.gather_windows(values, positions),
    )
    whole = products.weighted_sums(ops.tanh(products.dots(near, keys)), values)
    # Not linear in the rows, so no product after the scan gives the gradient.
    nonlinear = ops.sum(near_keys * near_keys * ops.cos(query), axis=1)
    return [ops.tanh(whole[:, 0] + nonlinear + ops.sum(values, axis=1))]


# Gradients of windows are added up in sources of more than 72 words.
@pytest.mark.parametrize("masked, source", [(False, 7), (True, 7), (True, 80)])
def test_gradients_of_rows_and_windows_equal_those_of_unrolled_steps(
    masked, source, float64
):
    rows = (BATCH, source, UNITS)
    shapes = [rows, rows, (UNITS, UNITS), (BATCH, UNITS)]
    variables = [
        keras.Variable(random(*shape, seed=i), dtype="float64")
        for i, shape in enumerate([*shapes, (STEPS, BATCH, UNITS)])
    ]
    first = np.random.default_rng(0).integers(
        source - WIDTH + 1, size=(STEPS, BATCH, 1, 1)
    )
    xs = {"first": ops.convert_to_tensor(first.astype("int32"))}
    mask = random(STEPS, BATCH) > 0 if masked else np.ones((STEPS, BATCH), bool)
    mask = ops.convert_to_tensor(mask)

    def one_step(parameters, states, given, x):
        keep = x.pop("mask")[:, None]
        new = attending_step(parameters, states, given, x)
        return [ops.where(keep, new[0], states[0])]

    def by_scan(*arguments):
        return scan(attending_step, *arguments, [0], mask)

    def by_steps(parameters, states, inputs, xs):
        xs = {**xs, "mask": mask}
        return unrolled(one_step, parameters, states, inputs, xs, [0])

    def loss(run):
        *parameters, start, inputs = [v + 0 for v in variables]
        return weighted_total(*run(parameters, [start], inputs, xs))

    assert_equal_gradients(loss, by_scan, by_steps, variables)
