"""Local attention of this library, with names common to all versions."""

import keras

from luong_keras import InputFeedingLSTM, LocalAttention
from speed.keras_fit import passes
from speed.worker import Work


def local_attention(
    source_length,
    sizes,
    method,
    alignment="predictive",
    unknown_lengths=False,
):
    """Return forward and backward passes of local attention.

    `method` is "loop", the decoder with input feeding, or "parallel", all
    steps at once. With `unknown_lengths` one graph serves all S and T.
    """
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    batch, units, steps, half_width = sizes
    memory = tf.random.normal((batch, source_length, units))
    inputs = tf.random.normal((batch, steps, units))
    attention = LocalAttention(alignment, half_width=half_width)
    decoder = InputFeedingLSTM(units, attention=attention)
    decoder.build(inputs.shape, memory.shape)
    call, layer = {
        "loop": (
            lambda inputs, memory: decoder(
                inputs, memory=memory, training=True
            ),
            decoder,
        ),
        "parallel": (attention, attention),
    }[method]
    lengths = [None, None] if unknown_lengths else [steps, source_length]
    shapes = [tf.TensorSpec([batch, length, units]) for length in lengths]
    return Work(passes(call, layer, inputs, memory, shapes))
