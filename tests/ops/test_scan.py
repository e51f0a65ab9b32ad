"""A scan with rematerialised steps, against the steps written out."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops import products, windows
from luong_keras.ops.loops import reads
from luong_keras.ops.products import product
from luong_keras.ops.scan import scan
from tests.layer_checks import loss_and_gradients, random

STEPS, BATCH, UNITS = 4, 3, 2


def step(parameters, states, given, x):
    """A kernel and a bias read by products only, one that is not, both."""
    kernel, bias, scale, twice = parameters
    hidden, total = states
    inner = product(hidden, kernel, bias) * scale + given
    inner = inner + product(hidden, twice) * ops.sum(twice) * x["weight"]
    hidden = ops.tanh(inner)
    return [hidden, total + product(hidden, kernel)]


def written_out(step, parameters, states, inputs, xs, outputs):
    sequences = []
    for t in range(STEPS):
        x = {name: each[t] for name, each in xs.items()}
        states = step(parameters, states, inputs[t], x)
        sequences.append([states[i] for i in outputs])
    return states, [ops.stack(each) for each in zip(*sequences, strict=True)]


@pytest.fixture(autouse=True)
def _only_where_there_are_any():
    if keras.backend.backend() not in ("tensorflow", "jax"):
        pytest.skip("scans run on TensorFlow and JAX")


@pytest.mark.parametrize("outputs", [[0], [1, 0]])
def test_gradients_are_those_of_the_steps_written_out(outputs, float64):
    square, row = (UNITS, UNITS), (BATCH, UNITS)
    shapes = [square, (UNITS,), (UNITS,), square, row, row]
    variables = [
        keras.Variable(random(*shape, seed=i), dtype="float64")
        for i, shape in enumerate([*shapes, (STEPS, *row)])
    ]
    xs = {"weight": ops.convert_to_tensor(random(STEPS, 1, 1, seed=9))}

    def loss(loop):
        *parameters, first, second, inputs = [v + 0 for v in variables]
        last, sequences = loop(
            step, parameters, [first, second], inputs, xs, outputs
        )
        return sum(
            ops.sum(x * random(*x.shape, seed=20 + i))
            for i, x in enumerate([*last, *sequences])
        )

    value, found = loss_and_gradients(lambda: loss(scan), variables)
    same, expected = loss_and_gradients(lambda: loss(written_out), variables)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_which_arguments_are_read():
    numbers = [ops.convert_to_tensor(random(2, 2)) for _ in range(3)]

    def second_and_third(first, second, third):
        return [ops.tanh(second), third]

    assert reads(second_and_third, numbers) == [False, True, True]


# Rows that all steps share.

WIDTH = 3


def attending_step(parameters, states, given, x):
    """Windows and whole rows, a view of a kernel, and rows in other use."""
    keys, values, kernel = parameters
    (hidden,) = states
    query = product(hidden, kernel, given, view=ops.transpose)[:, None]
    positions = x["first"] + ops.arange(WIDTH, dtype="int32")
    near_keys = windows.gather(keys, positions)
    near = products.weighted_sums(
        products.dots(query, near_keys), windows.gather(values, positions)
    )
    whole = products.weighted_sums(ops.tanh(products.dots(near, keys)), values)
    # Not linear in the rows: no product behind the scan.
    beside = ops.sum(near_keys * near_keys * ops.cos(query), axis=1)
    return [ops.tanh(whole[:, 0] + beside + ops.sum(values, axis=1))]


# In a source of more than 72 words the gradients of windows are added up.
@pytest.mark.parametrize("masked, source", [(False, 7), (True, 7), (True, 80)])
def test_rows_and_windows_have_the_gradients_of_the_steps_written_out(
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
        return written_out(one_step, parameters, states, inputs, xs, [0])

    def loss(run):
        *parameters, start, inputs = [v + 0 for v in variables]
        last, sequences = run(parameters, [start], inputs, xs)
        return sum(
            ops.sum(x * random(*x.shape, seed=20 + i))
            for i, x in enumerate([*last, *sequences])
        )

    value, found = loss_and_gradients(lambda: loss(by_scan), variables)
    same, expected = loss_and_gradients(lambda: loss(by_steps), variables)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
