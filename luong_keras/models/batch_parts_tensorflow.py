"""A batch in parts on TensorFlow: one after the other, or a few at once."""

import keras

from luong_keras.ops import whole_batch
from luong_keras.ops.replicas import replica_count


def train_step(model: keras.Model, data, parts: int, lanes: int) -> dict:
    """One step of `fit` whose rows go through the model in parts.

    Args:
        model: The compiled model.
        data: What `fit` gives a step.
        parts: How many parts.
        lanes: How many of them may be under way at once.

    Returns:
        The logs of the step.
    """
    import tensorflow as tf

    losses, numbers, gradients = [], [], []
    done: list = []
    for first in range(parts):
        # After a part before: else the device would hold them all.
        before = done[first - lanes] if first >= lanes else []
        with tf.control_dependencies(before):
            rows = tf.nest.map_structure(
                lambda x, first=first: (
                    None  # no sample weights, say
                    if x is None
                    else tf.identity(x[first::parts])
                ),
                data,
            )
            loss, number, found, logs = _part(model, rows)
        losses.append(loss)
        numbers.append(number)
        gradients.append(found)
        done.append(tf.nest.flatten([loss, found], expand_composites=True))
    share = 1.0
    if numbers[0] is not None:
        share = 1 / tf.maximum(tf.add_n(numbers), 1)
    variables = model.trainable_variables
    sums = [_summed(d, share) for d in zip(*gradients, strict=True)]
    model.optimizer.apply_gradients(zip(sums, variables, strict=True))
    # As in `keras.Model.train_step`, which weights by rows.
    tracker = next(item for item in model.metrics if item.name == "loss")
    tracker.update_state(
        tf.add_n(losses) * share * replica_count(),
        sample_weight=tf.shape(tf.nest.flatten(data)[0])[0],
    )
    return {**logs, "loss": tracker.result()}


def _part(model, rows):
    """The sum of the losses, its divisor's share, gradients and logs."""
    import tensorflow as tf

    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(rows)
    with whole_batch.sums() as part, tf.GradientTape() as tape:
        outputs = model(x, training=True)
        loss = model.compute_loss(x, y, outputs, sample_weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled, model.trainable_variables)
    logs = model.compute_metrics(x, y, outputs, sample_weight)
    return loss, part.number, gradients, logs


def _summed(gradients, share):
    """The sum of the parts' gradients of one variable, times the share."""
    import tensorflow as tf

    if isinstance(gradients[0], tf.IndexedSlices):
        values = tf.concat([d.values for d in gradients], 0)
        indices = tf.concat([d.indices for d in gradients], 0)
        values *= tf.cast(share, values.dtype)
        return tf.IndexedSlices(values, indices, gradients[0].dense_shape)
    return tf.add_n(gradients) * tf.cast(share, gradients[0].dtype)
