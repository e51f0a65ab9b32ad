"""Small runs on one or several devices of TensorFlow, in one process.

`python -m tests.training.mirrored_run FOLDER NAME ...` calls the named
functions below, with arguments as in `steps,sgd,skip`, and prints their results
as JSON. The devices are parts of the CPU, which must be configured before
TensorFlow initialises its devices.
"""

import sys
from functools import partial

import keras
import numpy as np
import tensorflow as tf

from luong_keras.training.fit import fit
from luong_keras.training.mirrored import mirrored
from luong_keras.training.monitoring import ReduceOnPlateau, StopOnNonFinite
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.snapshot import Snapshot
from luong_keras.training.weight_callbacks import BestWeights
from tests.training.small_runs import (
    EPOCHS,
    STEPS,
    Batches,
    answer,
    compared,
    difference,
    make,
    numbers,
)


def strategy(devices):
    if devices is None:
        return tf.distribute.get_strategy()
    if devices == "tensorflow":  # not made by `mirrored`
        return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return mirrored(int(devices))


def run(devices, epochs=EPOCHS, callbacks=(), path=None, parts=1, **options):
    """Train for some epochs and return the weights and the logs."""
    with strategy(devices).scope():
        model = make(**options)
        model.microbatches = parts
        history = fit(
            model,
            Batches(row_multiple=1 if devices is None else 4),
            epochs=epochs,
            callbacks=callbacks,
            snapshot_path=path,
            snapshot_steps=STEPS + 3,
            verbose=0,
        ).history
    return numbers(model.trainable_variables), history


def compare(folder, devices, attention, precision, optimizer, loss, parts=1):
    options = {
        **{"attention": attention, "precision": precision},
        **{"optimizer": optimizer, "loss": loss},
    }

    def record(append, norm):
        tf.numpy_function(append, [norm], [])

    return compared(partial(run, **options), devices, record, parts)


class Interrupt(keras.callbacks.Callback):
    """Callback that interrupts a run in its second epoch."""

    def on_train_batch_begin(self, batch, logs=None):
        if self.model.optimizer.iterations.numpy() > STEPS + 5:
            raise KeyboardInterrupt


def resumed(folder):
    """Continue runs with another number of devices."""

    def callbacks(name):
        return [
            StopOnNonFinite(every_steps=3),
            LearningRateHalving(first_halved_epoch=3),
            BestWeights(
                folder / f"{name}.weights.h5", "word_perplexity", "min"
            ),
        ]

    options = {"optimizer": "adam", "on_nonfinite": "skip", "epochs": 3}
    expected, logs = run(None, callbacks=callbacks("one"), **options)
    found = {"logs": logs}
    for before, after in ((2, None), (None, 2), (2, 4)):
        name = f"{before}-{after}"
        path = folder / f"{name}.npz"
        try:
            run(
                before,
                callbacks=[*callbacks(name), Interrupt()],
                path=path,
                **options,
            )
        except KeyboardInterrupt:
            position = Snapshot.read(path).position
        weights, logs = run(
            after, callbacks=callbacks(name), path=path, **options
        )
        found[name] = {
            "position": position,
            "weights": difference(weights, expected),
            "best": difference(
                best_weights(folder / f"{name}.weights.h5"),
                best_weights(folder / "one.weights.h5"),
            ),
            "logs": logs,
        }
    return found


def best_weights(path):
    model = make()
    model.load_weights(path)
    return numbers(model.trainable_variables)


def steps(folder, name, on_nonfinite):
    """Apply three steps of an optimizer, one with a NaN on the last replica.

    The summed gradient is (3, 4) for the kernel and 12 for the second row of
    the table.
    """
    shared = mirrored(2)
    with shared.scope():
        kernel = keras.Variable(np.zeros(2), dtype="float64", name="kernel")
        table = keras.Variable(
            np.zeros((3, 1)), dtype="float64", name="embeddings"
        )
        optimizer = make_optimizer(
            name, 1.0, 6.5, weight_decay=0.01, on_nonfinite=on_nonfinite
        )
        optimizer.build([kernel, table])

    def replica(gradient):
        rows = tf.IndexedSlices(
            tf.constant([[4.0], [2.0]], "float64"),
            tf.constant([1, 1]),
            tf.constant([3, 1]),
        )
        optimizer.apply([gradient, rows], [kernel, table])

    @tf.function
    def step(gradients):
        shared.run(replica, (gradients,))

    found = []
    for bad in (0.0, np.nan, 0.0):
        gradients = [np.array([3.0, 0.0]), np.array([0.0, 4.0 + bad])]
        step(
            shared.experimental_distribute_values_from_function(
                lambda context, gradients=gradients: tf.constant(
                    gradients[context.replica_id_in_sync_group]
                )
            )
        )
        found.append(
            {
                # one copy per replica
                "kernel": [copy.numpy().tolist() for copy in copies(kernel)],
                "table": [copy.numpy().tolist() for copy in copies(table)],
                "steps": [int(v) for v in copies(optimizer.nonfinite_steps)],
                "first": [int(v) for v in copies(optimizer.first_nonfinite)],
                "iterations": [int(v) for v in copies(optimizer.iterations)],
            }
        )
    return found


def copies(variable):
    return mirrored(2).experimental_local_results(variable.value)


def plateau(folder):
    """Return the learning rates that `ReduceOnPlateau` sets."""
    with mirrored(2).scope():
        model = make()
    callback = ReduceOnPlateau("loss")
    callback.set_model(model)
    rates = []
    for loss in (2.0, 3.0, 3.0):
        callback.on_epoch_end(0, {"loss": loss})
        rate = keras.ops.convert_to_numpy(model.optimizer.learning_rate)
        rates.append(float(rate))
    return rates


def shares(folder):
    """Return the target tokens per replica in the last batch of an epoch."""
    found = {}
    for count in (1, 2, 4):
        shared = mirrored(count)
        with shared.scope():
            batches = Batches(row_multiple=count)
            dataset = batches.shared(STEPS - 1, STEPS)
        (batch,) = shared.experimental_distribute_dataset(dataset)
        found[count] = [
            share.numpy().tolist()
            for share in shared.experimental_local_results(batch["target_out"])
        ]
    return found


def refused(folder):
    """Return the messages of `fit` for unsupported strategies and models."""
    found = {}
    with mirrored(2).scope():
        model = make()
        model.jit_compile = True
        found["compiled"] = refusal(model)
        model.compile(
            keras.optimizers.LossScaleOptimizer(model.optimizer), "mse"
        )
        found["scaled"] = refusal(model)
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        found["several machines"] = refusal(make())
    return found


def refusal(model):
    try:
        fit(model, Batches(), epochs=1, verbose=0)
    except ValueError as error:
        return str(error)
    return ""


def main(folder, *names):
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )
    answer(globals(), folder, names)


if __name__ == "__main__":
    main(*sys.argv[1:])
