"""Training on two devices of TensorFlow, in one process.

`python -m tests.training.replicas_run FOLDER NAME ...` calls the named
functions below, and prints their results as JSON. The devices are parts of the
CPU, which must be configured before TensorFlow initialises its devices.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from luong_keras.layers import LuongAttention
from luong_keras.losses import MaskedSparseCategoricalCrossentropy
from luong_keras.training.fit import fit
from luong_keras.training.monitoring import StopOnPlateau
from luong_keras.training.optimizers import make_optimizer
from tests.training.small_runs import Batches, answer, difference, numbers


def train(loss="mse", optimizer="sgd", callbacks=(), scope=None, run=None):
    """Train a model with attention, and return its weights."""
    keras.utils.set_random_seed(1)
    with scope or tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        query, value = keras.Input((3, 4)), keras.Input((5, 4))
        attended = LuongAttention()(query, value)
        model = keras.Model([query, value], attended)
        model.compile(optimizer, loss, jit_compile=False)
        if run:
            run(model, Batches(), epochs=1)
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(8, n, 4)).astype("float32") for n in (3, 5, 3)]
    model.fit(
        arrays[:2],
        arrays[2] if loss == "mse" else np.ones((8, 3)),
        batch_size=4,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
    )
    return numbers(model.weights)


def plain(folder):
    """Return the difference to the training on one device."""
    one = train(scope=tf.distribute.OneDeviceStrategy("CPU:0").scope())
    return difference(train(), one)


def refused(folder):
    """Return the errors of the parts of this library."""
    return {
        "loss": refusal(loss=MaskedSparseCategoricalCrossentropy()),
        "optimizer": refusal(optimizer=make_optimizer()),
        "callback": refusal(callbacks=[StopOnPlateau(3, "loss", "min")]),
        "fit": refusal(run=fit),
    }


def refusal(**parts):
    try:
        train(**parts)
    except ValueError as error:
        return str(error)
    return ""


def main(folder, *names):
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    answer(globals(), folder, names)


if __name__ == "__main__":
    main(*sys.argv[1:])
