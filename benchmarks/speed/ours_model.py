"""This library, through its public names."""

import keras
import numpy as np
from keras import ops

from luong_keras import (
    AttentionConfig,
    InputFeedingLSTM,
    LocalAttention,
    ModelConfig,
    TranslationModel,
    beam_search,
    greedy_search,
)
from luong_keras.losses import TranslationLoss
from luong_keras.ops import time_loop
from luong_keras.optimizers import make_optimizer
from speed.batches import random_words
from speed.configurations import CONFIGURATIONS
from speed.keras_fit import ON_JAX, compiled, fitted, policy, ready
from speed.worker import Work


def translation_model(configuration, precision, attention, bidirectional=False):
    """The model of a configuration, without dropout."""
    size = CONFIGURATIONS[configuration]
    keras.utils.set_random_seed(0)
    return TranslationModel(
        ModelConfig(
            source_vocabulary_size=size.vocabulary_size,
            target_vocabulary_size=size.vocabulary_size,
            embedding_size=size.units,
            units=size.units,
            encoder_layers=size.layers,
            decoder_layers=size.layers,
            bidirectional=bidirectional,
            reverse_source=False,
            attention=AttentionConfig(kind=attention),
            dropout=0.0,
            output_bias=True,
            precision=policy(precision),
        )
    )


def training(
    configuration,
    batches,
    precision="float32",
    attention="global",
    automatic=False,
):
    """Training steps by `fit`, as a run compiles it.

    With `automatic` the backend differentiates all of it, which is no option
    of the library.
    """
    if automatic:
        time_loop.BACKENDS = ()
    model = translation_model(configuration, precision, attention)
    model = model.training_model
    model.compile(
        make_optimizer("sgd", learning_rate=0.1, clip_norm=5.0),
        loss={"word": TranslationLoss("word"), "hits": None},
        jit_compile=ON_JAX,
    )
    run = fitted(
        model,
        batches,
        lambda batch: {name: batch["target_out"] for name in ("word", "hits")},
    )
    return Work(run, model.count_params())


def decoding(
    configuration,
    batch_size,
    beam_size,
    length,
    precision="float32",
    attention="global",
    folded=False,
):
    """Translations of `length` words of sentences of `length` words."""
    model = translation_model(configuration, precision, attention)
    if folded:
        model.fold_embedding()
    size = CONFIGURATIONS[configuration]
    source = ops.convert_to_tensor(random_words(size, batch_size, length))

    def search(source):
        memory, mask, states = model.encode(source)
        step = model.decoding_step(memory, mask)
        lengths = ops.full((batch_size,), length, dtype="int32")
        # Nothing may end before its length.
        limits = {
            "max_lengths": lengths,
            "max_steps": length,
            "min_lengths": lengths,
        }
        if beam_size == 1:
            return greedy_search(step, states, **limits)
        return beam_search(step, states, beam_size=beam_size, **limits)

    program = compiled(search, model.model)

    def run(steps):
        for _ in range(steps):
            found = program(source)
            score = ready(found.scores)[0, 0]
        return {
            "score": float(score),
            "length": int(ready(found.lengths).min()),
        }

    return Work(run, model.model.count_params())


def local_attention(source_length, sizes, method, alignment="predictive"):
    """Local attention forward and backward.

    `method` is "loop", the decoder with input feeding, or "parallel", all
    steps at once.
    """
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    batch, units, steps, half_width = sizes
    memory = tf.random.normal((batch, source_length, units))
    inputs = tf.random.normal((batch, steps, units))
    attention = LocalAttention(alignment, half_width=half_width)
    decoder = InputFeedingLSTM(units, attention=attention)
    decoder.build(inputs.shape, memory.shape)
    forward, trained = {
        "loop": (
            lambda: decoder(inputs, memory=memory, training=True),
            decoder,
        ),
        "parallel": (lambda: attention(inputs, memory), attention),
    }[method]

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            tape.watch([memory, inputs])
            loss = tf.reduce_sum(tf.square(forward()))
        weights = [v.value for v in trained.trainable_variables]
        return loss, tape.gradient(loss, [memory, inputs, *weights])

    def run(steps):
        for _ in range(steps):
            loss, _ = step()
        return {"loss": float(loss)}

    return Work(run)


def matrix_product(precision, width=2048):
    """Products of two square matrices: the peak that steps compare with."""
    factors = [
        ops.cast(
            np.random.default_rng(1).normal(size=(width, width)), precision
        )
        for _ in range(2)
    ]

    def run(steps):
        for _ in range(steps):
            product = ops.matmul(*factors)
        ready(ops.cast(product[0, 0], "float32"))
        return {"flops": 2 * width**3}

    return Work(run)
