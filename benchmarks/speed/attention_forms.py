"""Decoders for two benchmarks: one for each form of attention."""

import keras

from luong_keras.layers import (
    BahdanauLSTM,
    InputFeedingLSTM,
    LocalAttention,
    LuongAttention,
)
from speed.keras_fit import passes
from speed.worker import Work

FORMS = (
    *("general", "dot", "scaled_dot", "cosine", "concat", "location"),
    *("bahdanau", "local-m", "local-p", "no feeding", "none"),
)


def make_decoder(form, units, max_length, half_width):
    """Make a decoder; "no feeding" is general attention without feeding.

    `max_length` is for location, `half_width` for local attention.
    """
    if form == "bahdanau":
        return BahdanauLSTM(units)
    if form == "no feeding":
        return InputFeedingLSTM(units, attention="general", input_feeding=False)
    attention = {
        "none": lambda: None,
        "cosine": lambda: LuongAttention("cosine", use_scale=True),
        "location": lambda: LuongAttention("location", max_length=max_length),
        "local-m": lambda: LocalAttention("monotonic", half_width),
        "local-p": lambda: LocalAttention("predictive", half_width),
    }.get(form, lambda: form)
    return InputFeedingLSTM(units, attention=attention())


def count_parameters(form, units, max_length):
    """Count the parameters of the attention of a form, without W_c."""
    attention = make_decoder(form, units, max_length, 1).cell.attention
    if attention is None:
        return 0
    attention.build((None, None, units), (None, None, units))
    return attention.count_params()


def training(form, source_length, target_length, sizes):
    """Return passes forward and backward of a decoder on (B, S, U) memory."""
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    batch, units, half_width = sizes
    memory = tf.random.normal((batch, source_length, units))
    inputs = tf.random.normal((batch, target_length, units))
    decoder = make_decoder(form, units, source_length, half_width)

    def call(inputs, memory):
        attended = {} if form == "none" else {"memory": memory}
        return decoder(inputs, training=True, **attended)

    call(inputs, memory)  # makes the weights
    run = passes(call, decoder, inputs, memory)
    return Work(run, decoder.count_params())
