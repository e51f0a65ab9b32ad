"""The exponential average of an optimizer against a loop of NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.training.optimizers import ClippedSGD, make_optimizer

STEPS = 16
DECAY = 0.6  # reached by (1 + t) / (10 + t) with the 13th update


def make(name, scaled=False, **options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((2,), dtype="int32"),
            keras.layers.Embedding(5, 3),  # sparse gradients on TensorFlow
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    optimizer = make_optimizer(name, 0.1, average_decay=DECAY, **options)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 4.0)
    model.compile(
        optimizer, "mse", jit_compile=keras.backend.backend() == "jax"
    )
    return model


def values(variables):
    return [ops.convert_to_numpy(variable) for variable in variables]


@pytest.mark.parametrize(
    "options, skipped",
    [
        ({"name": "sgd"}, ()),
        ({"name": "sgd", "clip_norm": None}, ()),
        ({"name": "sgd", "clip_norm": 0.05, "on_nonfinite": "note"}, ()),
        ({"name": "adam", "on_nonfinite": "skip"}, (0, 5)),
        ({"name": "sgd", "scaled": True}, (4, 9)),
        (
            {
                "name": "sgd",
                "scaled": True,
                "on_nonfinite": "skip",
                "count_embeddings": False,
            },
            (2,),
        ),
    ],
)
def test_the_average_is_that_of_a_loop(options, skipped):
    model = make(**options)
    before = values(model.weights)
    expected = [value.astype("float64") for value in before]
    for step in range(STEPS):
        rng = np.random.default_rng(step)
        rows = rng.integers(0, 5, (4, 2)).astype("int32")
        target = np.nan if step in skipped else float(step)
        model.train_on_batch(rows, np.full((4, 1), target, "float32"))
        inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        averages = values(inner.averages)
        if step in skipped:
            for average, old in zip(averages, before, strict=True):
                np.testing.assert_array_equal(average, old)
            continue
        number = int(inner.iterations)
        decay = min(DECAY, (1 + number) / (10 + number))
        expected = [
            decay * old + (1 - decay) * new
            for old, new in zip(expected, values(model.weights), strict=True)
        ]
        for average, value in zip(averages, expected, strict=True):
            np.testing.assert_allclose(average, value, rtol=1e-5, atol=1e-6)
        before = averages


def test_the_averages_begin_as_the_weights():
    model = make("sgd")
    model.optimizer.build(model.trainable_variables)
    for average, weight in zip(
        values(model.optimizer.averages), values(model.weights), strict=True
    ):
        np.testing.assert_array_equal(average, weight)


def test_without_a_decay_there_is_no_average():
    optimizer = make_optimizer("sgd")
    optimizer.build([keras.Variable([1.0])])
    assert optimizer.averages is None
    assert [v.name for v in optimizer.variables] == [
        "iteration",
        "learning_rate",
    ]


def test_the_decay_is_part_of_the_configuration():
    optimizer = make_optimizer("adam", average_decay=0.99)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.average_decay == 0.99


@pytest.mark.parametrize("decay", [0.0, 1.0, -0.5])
def test_a_decay_lies_between_0_and_1(decay):
    with pytest.raises(ValueError, match="greater than 0 and less than 1"):
        make_optimizer(average_decay=decay)


def test_gradients_of_several_steps_are_refused():
    with pytest.raises(ValueError, match="gradient_accumulation_steps=2"):
        ClippedSGD(average_decay=0.9, gradient_accumulation_steps=2)
