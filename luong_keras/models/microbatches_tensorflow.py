"""A batch in parts on TensorFlow: one after the other, or a few at once."""

import functools

import keras

from luong_keras.ops import microbatch_normalization
from luong_keras.ops.replicas import replica_count


def train_step(
    model: keras.Model, data, parts: int, parallel_microbatches: int
) -> dict:
    """One step of `fit` whose rows go through the model in parts.

    Args:
        model: The compiled model.
        data: What `fit` gives a step.
        parts: How many parts.
        parallel_microbatches: How many of them may be under way at once.

    Returns:
        The logs of the step.
    """
    import tensorflow as tf

    losses, numbers = [], []
    worker_sums: list = [None] * parallel_microbatches
    worker_ends: list = [[]] * parallel_microbatches
    for first in range(parts):
        worker = first % parallel_microbatches
        # After what this worker did before: else the device would hold all of
        # the parts.
        with tf.control_dependencies(worker_ends[worker]):
            rows = tf.nest.map_structure(
                lambda x, first=first: (
                    None  # no sample weights, say
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
            [loss, gradients], expand_composites=True
        )
    share = 1.0
    if numbers[0] is not None:
        share = 1 / tf.maximum(_total(numbers), 1)
    variables = model.trainable_variables
    sums = [
        _scaled(_total(of_one), share)
        for of_one in zip(*worker_sums[:parts], strict=True)
    ]
    model.optimizer.apply_gradients(zip(sums, variables, strict=True))
    # As in `keras.Model.train_step`, which weights by rows.
    tracker = next(item for item in model.metrics if item.name == "loss")
    tracker.update_state(
        _total(losses) * share * replica_count(),
        sample_weight=tf.shape(tf.nest.flatten(data)[0])[0],
    )
    return {**logs, "loss": tracker.result()}


def _part(model, rows):
    """The sum of the losses, its divisor's share, gradients and logs."""
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
    """Two gradients of one variable, added up."""
    import tensorflow as tf

    if not isinstance(one, tf.IndexedSlices):
        return one + other
    return tf.IndexedSlices(
        tf.concat([one.values, other.values], 0),
        tf.concat([one.indices, other.indices], 0),
        one.dense_shape,
    )


def _total(tensors):
    """Their sum, always in the same order.

    TensorFlow makes one AddN of additions in a row, whose order is that in
    which memory comes free: a run would not repeat to the bit. (`_plus` is
    safe from that: the next part waits for its result.)
    """
    import tensorflow as tf

    if isinstance(tensors[0], tf.IndexedSlices):
        return functools.reduce(_plus, tensors)
    return tf.reduce_sum(tf.stack(tensors), 0)


def _scaled(gradient, share):
    """The gradient times the share, which is kept sparse."""
    import tensorflow as tf

    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * tf.cast(share, gradient.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(share, gradient.dtype)
