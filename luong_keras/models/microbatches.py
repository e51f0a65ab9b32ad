"""Micro-batches: in sequence, in parallel, and one per device.

`train_step` is for TensorFlow, `loss_and_updates` for JAX. By default XLA does
not divide the work of a batch over devices: each weight's gradient is a product
over the words of all rows at once, for which XLA gathers the rows on each
device (`benchmarks/devices.py` shows it). Here each device runs the program of
a single device over a part of the rows, and devices exchange only the sums at
the end.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from luong_keras.ops import microbatch_normalization
from luong_keras.ops.devices import replica_count

_SEED_STATE = "seed_generator_state"
# Added per device; odd, so that 2**32 devices have 2**32 seeds.
_SEED_STRIDE = np.uint32(0x9E3779B9)


def is_distributed() -> bool:
    """Test whether Keras distributes its work over devices."""
    return keras.distribution.distribution() is not None


def loss_and_updates(
    model: keras.Model,
    of_part: Callable[..., tuple],
    state: tuple,
    rows: tuple,
    training: bool,
    parts: int = 1,
) -> tuple:
    """Do `keras.Model.compute_loss_and_updates` over micro-batches.

    The loss has a custom gradient: that of all parts together.

    Args:
        model: The model.
        of_part: The method `compute_loss_and_updates` for one part.
        state: Lists of the values of the trainable, the non-trainable, the
            metrics' and the optimizer's variables.
        rows: Inputs, targets and sample weights; the first axis is split.
        training: As in every Keras model.
        parts: Number of parts into which each device splits its rows.
    """
    import jax

    seeds = [
        variable.path.endswith(_SEED_STATE)
        for variable in model.non_trainable_variables
    ]
    trainable, *others = state

    def objective(trainable, others, rows):
        variables, metrics, optimizer = others
        with microbatch_normalization.sum_losses() as part:
            loss, aux = of_part(
                trainable, variables, metrics, *rows, training, optimizer
            )
        unscaled, outputs, variables, metrics = aux
        sums = (loss, unscaled, part.number)
        return loss, (sums, outputs, [variables, metrics, optimizer])

    def run(trainable, others, rows):
        if not training:
            _, found = objective(trainable, others, rows)
            return (*found, [])
        gradient = jax.value_and_grad(objective, has_aux=True)
        (_, found), gradients = gradient(trainable, others, rows)
        return (*found, gradients)

    def whole(trainable):
        make = _one_after_the_other(run, parts) if parts > 1 else run
        if is_distributed():
            make = _one_on_each_device(make, seeds)
        sums, outputs, others_after, gradients = make(trainable, others, rows)
        *losses, number = sums
        if number is not None:
            share = 1 / jax.numpy.maximum(number, 1)
            losses, gradients = jax.tree.map(
                lambda x: x * share.astype(x.dtype), (losses, gradients)
            )
        loss, unscaled = losses
        variables, metrics, _ = others_after
        return loss, (unscaled, outputs, variables, metrics), gradients

    @jax.custom_vjp
    def attached(trainable):
        return whole(trainable)[:2]

    def forward(trainable):
        loss, aux, gradients = whole(trainable)
        return (loss, aux), gradients

    def backward(gradients, upstream):
        return ([d * upstream[0].astype(d.dtype) for d in gradients],)

    attached.defvjp(forward, backward)
    return attached(trainable)


def _one_after_the_other(run, parts: int):
    """Return a function that calls `run` per part and adds up its sums.

    A part has every `parts`-th row.
    """
    import jax
    from jax import numpy as jnp

    def split(x):
        return jnp.moveaxis(x.reshape(-1, parts, *x.shape[1:]), 1, 0)

    def joined(x):
        return jnp.moveaxis(x, 0, 1).reshape(-1, *x.shape[2:])

    def run_all(trainable, others, rows):
        rows = jax.tree.map(split, rows)

        def step(carry, rows):
            others, sums, gradients = carry
            more, outputs, others, d = run(trainable, others, rows)
            added = jax.tree.map(jnp.add, (sums, gradients), (more, d))
            return (others, *added), outputs

        first = jax.tree.map(lambda x: x[0], rows)
        shapes = jax.eval_shape(run, trainable, others, first)
        zeros = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype), (shapes[0], shapes[3])
        )
        (others, sums, gradients), outputs = jax.lax.scan(
            step, (others, *zeros), rows
        )
        return sums, jax.tree.map(joined, outputs), others, gradients

    return run_all


def _one_on_each_device(run, seeds: list[bool]):
    """Return a function that calls `run` per device, with separate seeds."""
    import jax

    distribution: Any = keras.distribution.distribution()
    axis = distribution.batch_dim_name
    mesh = distribution.device_mesh.backend_mesh
    everywhere = jax.sharding.PartitionSpec()
    split = jax.sharding.PartitionSpec(axis)

    def moved(others, by):
        variables, *rest = others
        variables = [
            value.at[0].add(by.astype(value.dtype)) if is_seed else value
            for value, is_seed in zip(variables, seeds, strict=True)
        ]
        return [variables, *rest]

    def run_here(trainable, others, rows):
        own = jax.lax.axis_index(axis).astype("uint32") * _SEED_STRIDE
        sums, outputs, others, gradients = run(
            trainable, moved(others, own), rows
        )
        sums, gradients = jax.lax.psum((sums, gradients), axis)
        return sums, outputs, moved(others, -own), gradients

    return jax.shard_map(
        run_here,
        mesh=mesh,
        in_specs=(everywhere, everywhere, split),
        out_specs=(everywhere, split, everywhere, everywhere),
        # The variables, which are not summed, are the same on all devices.
        check_vma=False,
    )


def train_step(
    model: keras.Model, data, parts: int, parallel_microbatches: int
) -> dict:
    """Run one step of `fit` whose rows go through the model in parts.

    Args:
        model: The compiled model.
        data: The data that `fit` passes to a step.
        parts: Number of parts.
        parallel_microbatches: Number of parts that may be computed at once.

    Returns:
        The logs of the step.
    """
    import tensorflow as tf

    losses, numbers = [], []
    worker_sums: list = [None] * parallel_microbatches
    worker_ends: list = [[]] * parallel_microbatches
    for first in range(parts):
        worker = first % parallel_microbatches
        # After the previous part of this worker: otherwise the device would
        # hold all parts at once.
        with tf.control_dependencies(worker_ends[worker]):
            rows = tf.nest.map_structure(
                lambda x, first=first: (
                    None  # for example no sample weights
                    if x is None
                    else tf.identity(x[first::parts])
                ),
                data,
            )
            loss, number, gradients, logs = _part(model, rows)
        losses.append(loss)
        numbers.append(number)
        if worker_sums[worker] is not None:
            gradients = [
                _plus(*two)
                for two in zip(worker_sums[worker], gradients, strict=True)
            ]
        worker_sums[worker] = gradients
        worker_ends[worker] = tf.nest.flatten(
            [loss, [each for each in gradients if each is not None]],
            expand_composites=True,
        )
    share = 1.0
    if numbers[0] is not None:
        share = 1 / tf.maximum(_total(numbers), 1)
    variables = model.trainable_variables
    gradients = zip(*worker_sums[:parts], strict=True)
    loss, *sums = [
        None
        if total is None
        else tf.math.scalar_mul(tf.cast(share, total.dtype), total)
        for total in map(_total, [losses, *gradients])
    ]
    model.optimizer.apply_gradients(zip(sums, variables, strict=True))
    # As in `keras.Model.train_step`, which weights by rows.
    tracker = next(item for item in model.metrics if item.name == "loss")
    tracker.update_state(
        loss * replica_count(),
        sample_weight=tf.shape(tf.nest.flatten(data)[0])[0],
    )
    return {**logs, "loss": tracker.result()}


def _part(model, rows):
    """Return the loss sum of a part, its divisor, gradients and logs."""
    import tensorflow as tf

    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(rows)
    with (
        microbatch_normalization.sum_losses() as part,
        tf.GradientTape() as tape,
    ):
        outputs = model(x, training=True)
        loss = model.compute_loss(x, y, outputs, sample_weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled, model.trainable_variables)
    logs = model.compute_metrics(x, y, outputs, sample_weight)
    return loss, part.number, gradients, logs


def _plus(one, other):
    """Add two gradients of one variable, which are None without a path."""
    import tensorflow as tf

    if one is None:
        return None
    if not isinstance(one, tf.IndexedSlices):
        return one + other
    return tf.IndexedSlices(
        tf.concat([one.values, other.values], 0),
        tf.concat([one.indices, other.indices], 0),
        one.dense_shape,
    )


def _total(tensors):
    """Return the sum of tensors, always added in the same order, or None.

    TensorFlow merges consecutive additions into one AddN, whose order depends
    on when memory becomes free: a run would not repeat to the bit. (`_plus` is
    safe, because the next part waits for its result.)
    """
    import tensorflow as tf

    if tensors[0] is None or isinstance(tensors[0], tf.IndexedSlices):
        return functools.reduce(_plus, tensors)
    return tf.reduce_sum(tf.stack(tensors), 0)
