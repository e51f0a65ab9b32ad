"""A loop that runs its steps again, against the same steps written out."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops.products import product
from luong_keras.ops.replayed_loop import replayed_loop
from luong_keras.ops.vector_jacobian import reads
from tests.layer_checks import loss_and_gradients, random

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="these loops run on TensorFlow and JAX",
)
STEPS, BATCH, UNITS = 4, 3, 2


def step(parameters, states, given, x):
    """A kernel and a bias read by products alone, one that is not, both."""
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
        pytest.skip("these loops run on TensorFlow and JAX")


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

    value, found = loss_and_gradients(lambda: loss(replayed_loop), variables)
    same, expected = loss_and_gradients(lambda: loss(written_out), variables)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_which_arguments_are_read():
    numbers = [ops.convert_to_tensor(random(2, 2)) for _ in range(3)]

    def second_and_third(first, second, third):
        return [ops.tanh(second), third]

    assert reads(second_and_third, numbers) == [False, True, True]
