"""Data, callbacks and marks of the tests that train with `fit`."""

import keras
import numpy as np
import pytest

JIT = keras.backend.backend() == "jax"
SEVERAL_STEPS = pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras on torch runs one step per execution",
)


class Rows:
    """Batches of four rows, whose targets are 1 except for those of `bad`."""

    def __init__(self, steps_per_epoch=4, width=1, missing=0, bad=None):
        self.steps_per_epoch, self.width = steps_per_epoch, width
        self.missing, self.bad = missing, bad or {}

    def dataset(self, start_step, stop_step):
        for step in range(start_step, stop_step - self.missing):
            rows = np.random.default_rng(step).normal(size=(4, self.width))
            value = self.bad.get(step, 1.0)
            yield rows.astype("float32"), np.full((4, 1), value, "float32")


class Kill(keras.callbacks.Callback):
    """Callback that interrupts a run in a batch or at the end of an epoch."""

    def __init__(self, epoch, batch=None):
        super().__init__()
        self.epoch, self.batch = epoch, batch

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch + 1

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, self.batch):
            raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1, None) == (self.epoch, self.batch):
            raise KeyboardInterrupt


def state_of(model):
    """Return all variables of a model and its optimizer, as arrays."""
    variables = [*model.variables, *model.optimizer.variables]
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def call_after_batch(number, function):
    """Return a callback that calls a function after a batch of an epoch."""

    def call(batch, logs):
        if batch == number:
            function()

    return keras.callbacks.LambdaCallback(on_train_batch_end=call)
