"""Small runs on one or several devices of JAX, or in several processes.

`python -m tests.training.jax_run FOLDER NAME ...` calls the named functions
below, with arguments as in `compare,2+4,global,sgd,word`, and prints their
results as JSON. The devices are four parts of the processor; if the environment
names several processes, each process has one device.
"""

import os
import sys

import jax
import numpy as np

from luong_keras.recipe import devices
from luong_keras.recipe.training import rows_of_process
from luong_keras.training.fit import fit
from tests.training.small_runs import (
    Batches,
    answer,
    compared,
    make,
    numbers,
)

ROWS = 12  # per batch with padding rows: for 1 to 4 devices and 3 parts


def run(used, epochs=5, parts=1, **options):
    """Train for some epochs and return the weights and the logs."""
    model = make(precision="float32", **options)
    model.microbatches = parts
    share = rows_of_process(used, parts)
    history = fit(
        model,
        # the same padding rows for each number of devices
        Batches(**{**share, "row_multiple": ROWS}),
        epochs=epochs,
        verbose=0,
    ).history
    return numbers(model.trainable_variables), history


def compare(folder, counts, attention, optimizer, loss, parts=1):
    options = {"attention": attention, "optimizer": optimizer, "loss": loss}

    def train(count, **more):
        used = devices.share_rows(jax.devices()[: int(count or 1)])
        return run(used, **options, **more)

    return compared(train, counts, jax.debug.callback, parts)


def dropout(folder, count):
    """Return the losses of two runs with dropout."""
    used = devices.share_rows(jax.devices()[: int(count)])
    return [run(used, 2, dropout=0.5)[1]["loss"] for _ in range(2)]


def masks(folder):
    """Return the losses of equal rows, which differ if the masks do."""
    devices.share_rows(jax.devices()[:2])
    model = make(precision="float32", dropout=0.5)
    (x, _), *_ = Batches(row_multiple=4).dataset(0, 1).as_numpy_iterator()
    rows = {k: np.repeat(v[:1], 4, 0) for k, v in x.items()}
    model.optimizer.build(model.trainable_variables)
    *state, optimizer = [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.metrics_variables,
            model.optimizer.variables,
        )
    ]
    targets = {"word": rows["target_out"], "hits": rows["target_out"]}
    step = jax.jit(model.compute_loss_and_updates, static_argnums=(6,))
    _, (_, outputs, seeds, _) = step(
        *state, rows, targets, None, True, optimizer
    )
    return {
        "losses": np.asarray(outputs["word"]).sum(1).tolist(),
        "equal seeds": all(
            len({np.asarray(s.data).tobytes() for s in v.addressable_shards})
            == 1
            for v in seeds
        ),
    }


def one_process(folder):
    """Save the weights of this process, which is one of several."""
    used = devices.jax_devices(1)
    weights, logs = run(used, attention="global", loss="word")
    np.savez(folder / f"weights-{used.rank}.npz", *weights)
    devices.leave_processes(used)
    return {"logs": logs, "world": used.world}


def two_devices(folder):
    """Save the weights trained on two devices of one process."""
    used = devices.share_rows(jax.devices()[:2])
    weights, logs = run(used, attention="global", loss="word")
    np.savez(folder / "weights-two.npz", *weights)
    return {"logs": logs}


def main(folder, *names):
    if "KERAS_DISTRIBUTION_NUM_PROCESSES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", 4)
    answer(globals(), folder, names)


if __name__ == "__main__":
    main(*sys.argv[1:])
