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

_SEED_STATE = "seed_generator_state"
# Added per device; odd, so that 2**32 devices have 2**32 seeds.
_SEED_STRIDE = np.uint32(0x9E3779B9)


def is_distributed() -> bool:
    """Test whether Keras distributes its work over devices."""
    return keras.distribution.distribution() is not None


def loss_and_updates(
    model: keras.Model,
    compute_part: Callable[..., tuple],
    state: tuple,
    rows: tuple,
    training: bool,
    parts: int = 1,
) -> tuple:
    """Do `keras.Model.compute_loss_and_updates` over micro-batches.

    The loss has a custom gradient: that of all parts together.

    Args:
        model: The model.
        compute_part: The method `compute_loss_and_updates` for one part.
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
    trainable, *other_state = state

    def objective(trainable, other_state, rows):
        variables, metrics, optimizer = other_state
        with microbatch_normalization.sum_losses() as part:
            loss, aux = compute_part(
                trainable, variables, metrics, *rows, training, optimizer
            )
        unscaled, outputs, variables, metrics = aux
        sums = (loss, unscaled, part[0])
        return loss, (sums, outputs, [variables, metrics, optimizer])

    def run(trainable, other_state, rows):
        if not training:
            _, results = objective(trainable, other_state, rows)
            return (*results, [])
        gradient = jax.value_and_grad(objective, has_aux=True)
        (_, results), gradients = gradient(trainable, other_state, rows)
        return (*results, gradients)

    def run_batch(trainable):
        run_parts = _run_in_sequence(run, parts) if parts > 1 else run
        if is_distributed():
            run_parts = _run_on_devices(run_parts, seeds)
        sums, outputs, new_state, gradients = run_parts(
            trainable, other_state, rows
        )
        *losses, number = sums
        if number is not None:
            factor = 1 / jax.numpy.maximum(number, 1)
            losses, gradients = jax.tree.map(
                lambda x: x * factor.astype(x.dtype), (losses, gradients)
            )
        loss, unscaled = losses
        variables, metrics, _ = new_state
        return loss, (unscaled, outputs, variables, metrics), gradients

    @jax.custom_vjp
    def batch_loss(trainable):
        return run_batch(trainable)[:2]

    def forward(trainable):
        loss, aux, gradients = run_batch(trainable)
        return (loss, aux), gradients

    def backward(gradients, upstream):
        return ([d * upstream[0].astype(d.dtype) for d in gradients],)

    batch_loss.defvjp(forward, backward)
    return batch_loss(trainable)


def _run_in_sequence(run, parts: int):
    """Return a function that calls `run` per part and adds up its sums.

    A part has every `parts`-th row.
    """
    import jax
    from jax import numpy as jnp

    def split(x):
        return jnp.moveaxis(x.reshape(-1, parts, *x.shape[1:]), 1, 0)

    def join(x):
        return jnp.moveaxis(x, 0, 1).reshape(-1, *x.shape[2:])

    def run_all(trainable, other_state, rows):
        count = jax.tree.leaves(rows)[0].shape[0]
        if count % parts:
            raise ValueError(
                "On JAX `microbatches` must divide the number of rows of each "
                f"batch on a device. Received: {count} rows, "
                f"microbatches={parts}. Leave out the last, smaller batch of "
                "an epoch, or pad it."
            )
        rows = jax.tree.map(split, rows)

        def step(carry, rows):
            other_state, sums, gradients = carry
            part_sums, outputs, other_state, part_gradients = run(
                trainable, other_state, rows
            )
            totals = jax.tree.map(
                jnp.add, (sums, gradients), (part_sums, part_gradients)
            )
            return (other_state, *totals), outputs

        first = jax.tree.map(lambda x: x[0], rows)
        shapes = jax.eval_shape(run, trainable, other_state, first)
        zeros = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype), (shapes[0], shapes[3])
        )
        (other_state, sums, gradients), outputs = jax.lax.scan(
            step, (other_state, *zeros), rows
        )
        return sums, jax.tree.map(join, outputs), other_state, gradients

    return run_all


def _run_on_devices(run, seeds: list[bool]):
    """Return a function that calls `run` per device, with separate seeds."""
    import jax

    distribution: Any = keras.distribution.distribution()
    axis = distribution.batch_dim_name
    mesh = distribution.device_mesh.backend_mesh
    replicated = jax.sharding.PartitionSpec()
    sharded = jax.sharding.PartitionSpec(axis)

    def shift_seeds(other_state, offset):
        variables, *rest = other_state
        variables = [
            value.at[0].add(offset.astype(value.dtype)) if is_seed else value
            for value, is_seed in zip(variables, seeds, strict=True)
        ]
        return [variables, *rest]

    def run_here(trainable, other_state, rows):
        offset = jax.lax.axis_index(axis).astype("uint32") * _SEED_STRIDE
        sums, outputs, other_state, gradients = run(
            trainable, shift_seeds(other_state, offset), rows
        )
        sums, gradients = jax.lax.psum((sums, gradients), axis)
        return sums, outputs, shift_seeds(other_state, -offset), gradients

    return jax.shard_map(
        run_here,
        mesh=mesh,
        in_specs=(replicated, replicated, sharded),
        out_specs=(replicated, sharded, replicated, replicated),
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

    rows = tf.nest.flatten(data)[0].shape[0]
    parts = min(parts, rows or parts)
    compute_part = functools.partial(_compute_part, model)
    if parallel_microbatches == 1:
        # Trace one part, and call it for each. Parallel parts need copies,
        # because calls that change a variable (a seed) wait for each other.
        compute_part = tf.function(
            compute_part,
            autograph=False,
            reduce_retracing=True,
            experimental_attributes={"_noinline": True},
        )
    losses, numbers = [], []
    worker_sums: list = [[]] * parallel_microbatches
    for first in range(parts):
        worker = first % parallel_microbatches
        # After the previous part of this worker: otherwise the device would
        # hold all parts at once.
        previous = [d for d in worker_sums[worker] if d is not None]
        with tf.control_dependencies(
            tf.nest.flatten(previous, expand_composites=True)
        ):
            rows = tf.nest.map_structure(
                lambda x, first=first: (
                    None  # for example no sample weights
                    if x is None
                    else tf.identity(x[first::parts])
                ),
                data,
            )
            loss, number, gradients, logs = compute_part(rows)
        losses.append(loss)
        numbers.append(number)
        if worker_sums[worker]:
            gradients = [
                _add_gradients(*pair)
                for pair in zip(worker_sums[worker], gradients, strict=True)
            ]
        worker_sums[worker] = gradients
    factor = 1.0
    if numbers[0] is not None:
        factor = 1 / tf.maximum(_sum_in_order(numbers), 1)
    variables = model.trainable_variables
    gradients = zip(*worker_sums[:parts], strict=True)
    loss, *sums = [
        None
        if total is None
        else tf.math.scalar_mul(tf.cast(factor, total.dtype), total)
        for total in map(_sum_in_order, [losses, *gradients])
    ]
    model.optimizer.apply_gradients(zip(sums, variables, strict=True))
    # As in `keras.Model.train_step`, which weights by rows.
    tracker = next(item for item in model.metrics if item.name == "loss")
    tracker.update_state(
        loss, sample_weight=tf.shape(tf.nest.flatten(data)[0])[0]
    )
    return {**logs, "loss": tracker.result()}


def _compute_part(model, rows):
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
    return loss, part[0], gradients, logs


def _add_gradients(gradient, addend):
    """Add two gradients of one variable, which are None without a path."""
    import tensorflow as tf

    if gradient is None:
        return None
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient + addend
    return tf.IndexedSlices(
        tf.concat([gradient.values, addend.values], 0),
        tf.concat([gradient.indices, addend.indices], 0),
        gradient.dense_shape,
    )


def _sum_in_order(tensors):
    """Return the sum of tensors, always added in the same order, or None.

    TensorFlow merges consecutive additions into one AddN, whose order depends
    on when memory becomes free: a run would not repeat to the bit.
    (`_add_gradients` is safe, because the next part waits for its result.)
    """
    import tensorflow as tf

    if tensors[0] is None or isinstance(tensors[0], tf.IndexedSlices):
        return functools.reduce(_add_gradients, tensors)
    return tf.reduce_sum(tf.stack(tensors), 0)
