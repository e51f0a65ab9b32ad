"""This library, through its public names."""

from pathlib import Path

import keras
import numpy as np
from keras import ops

from luong_keras import (
    AttentionConfig,
    ModelConfig,
    TranslationModel,
    beam_search,
    greedy_search,
)
from luong_keras.layers import encoder, output_projection
from luong_keras.layers.rnn import attention_rnn
from luong_keras.losses import TranslationLoss
from luong_keras.ops.cross_entropy import word_losses
from luong_keras.ops.products import product
from luong_keras.optimizers import make_optimizer
from speed.batches import EOS_ID, batch_shape, random_words, read_batches
from speed.configurations import CONFIGURATIONS
from speed.keras_fit import (
    ON_JAX,
    ON_TENSORFLOW,
    fitted,
    one_program,
    passes,
    policy,
    ready,
)
from speed.worker import Work


def _losses_of_all_words(
    vectors, kernel, bias, targets, label_smoothing, pad_id, training
):
    logits = product(vectors, kernel, bias)
    return word_losses(logits, targets, label_smoothing, pad_id)


def translation_model(
    configuration,
    precision,
    attention,
    bidirectional=False,
    reverse_source=False,
    sampled=None,
    **settings,
):
    """Make the model of a configuration, without dropout.

    `attention` is the kind of attention or a dict of its settings. `settings`
    are further settings of the model. `sampled` is the number of words that
    estimate the losses.
    """
    if isinstance(attention, str):
        attention = {"kind": attention}
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
            reverse_source=reverse_source,
            attention=AttentionConfig(**attention),
            dropout=0.0,
            output_bias=True,
            precision=policy(precision),
            **settings,
        ),
        **({} if sampled is None else {"sampled_softmax": sampled}),
    )


def training(
    configuration,
    batches,
    precision="float32",
    attention="global",
    settings=None,
    deferred=True,
    automatic=False,
    compiled=ON_JAX,
    parallel_microbatches=1,
    microbatches=1,
):
    """Return training steps by `fit`, compiled like a run.

    With `automatic` the backend differentiates the whole model, which the
    library has no option for.
    """
    if automatic:
        attention_rnn.BACKENDS = encoder.BACKENDS = ()
        output_projection.chunked_word_losses = _losses_of_all_words
    model = _model_of(configuration, precision, attention, settings, deferred)
    model = model.training_model
    model.microbatches = microbatches * parallel_microbatches
    model.parallel_microbatches = parallel_microbatches
    if compiled and ON_TENSORFLOW:
        for layer in model._flatten_layers():
            if hasattr(layer, "use_cudnn"):
                # Otherwise Keras does not compile the model on a GPU.
                layer.use_cudnn, layer.supports_jit = False, True
    model.compile(
        make_optimizer("sgd", learning_rate=0.1, clip_norm=5.0),
        loss={"word": TranslationLoss("word"), "hits": None},
        jit_compile=compiled,
    )
    run = fitted(
        model,
        batches,
        lambda batch: {name: batch["target_out"] for name in ("word", "hits")},
    )
    return Work(run, model.count_params())


def decoder(configuration, batches, precision, settings, deferred):
    """Return passes forward and backward of the decoder, on TensorFlow."""
    import tensorflow as tf

    model = _model_of(configuration, precision, "global", settings, deferred)
    layer, units = model.decoder, CONFIGURATIONS[configuration].units
    rows, source, target = batch_shape(read_batches(batches)[0])
    memory = tf.random.normal((rows, source, units), seed=0)
    inputs = tf.random.normal((rows, target, units), seed=1)

    def call(inputs, memory):
        return layer(inputs, memory=memory, training=True)

    run = passes(call, layer, inputs, memory)
    return Work(run, layer.count_params())


def _model_of(configuration, precision, attention, settings, deferred):
    settings = {"attention": attention, **(settings or {})}
    model = translation_model(configuration, precision, **settings)
    model.decoder.deferred_gradients = "auto" if deferred else False
    return model


def decoding(
    configuration,
    batch_size,
    beam_size,
    length,
    precision="float32",
    attention="global",
    shortlist=None,
    compiled=ON_JAX,
):
    """Return a search of `length` words for sentences of `length` words.

    `shortlist` limits the search to that many random words of the vocabulary.
    `compiled` tells whether XLA compiles the search, as it does on JAX.
    """
    model = translation_model(configuration, precision, attention)
    size = CONFIGURATIONS[configuration]
    source = ops.convert_to_tensor(random_words(size, batch_size, length))

    words = ()
    if shortlist is not None:
        draw = np.random.default_rng(0).permutation
        others = draw(np.arange(EOS_ID + 1, size.vocabulary_size))
        others = np.sort(others[: shortlist - EOS_ID - 1])
        words = (np.append(np.arange(EOS_ID + 1), others).astype("int32"),)

    def search(source):
        memory, mask, states = model.encode(source)
        step = model.decoding_step(memory, mask, *words)
        lengths = ops.full((batch_size,), length, dtype="int32")
        # No sentence may end before its length.
        limits = {"max_lengths": lengths, "min_lengths": lengths}
        if beam_size == 1:
            return greedy_search(step, states, **limits)
        return beam_search(step, states, beam_size=beam_size, **limits)

    program = one_program(search, model.model, compiled)

    def run(steps):
        for _ in range(steps):
            found = program(source)
            score = ready(found.scores)[0, 0]
        return {
            "score": float(score),
            "length": int(ready(found.lengths).min()),
        }

    return Work(run, model.model.count_params())


def translating(
    run, sentences_file, batch_size, beam_size, found_file, shortlist=None
):
    """Return translations of a file by a trained run; write them once."""
    from luong_keras import DecodingConfig, Translator

    given = {} if shortlist is None else {"shortlist": shortlist}
    # Like Marian's --max-length-factor.
    decoding = DecodingConfig(
        beam_size=beam_size,
        batch_size=batch_size,
        max_length_ratio=2.0,
        **given,
    )
    translator = Translator.from_run(run, decoding=decoding)
    lines = Path(sentences_file).read_text(encoding="utf-8").splitlines()
    # This builds the graph.
    found = [nbest[0] for nbest in translator.nbest(lines)]
    texts = "\n".join(translation.text for translation in found)
    Path(found_file).write_text(texts, encoding="utf-8")
    words = sum(len(translation.tokens) + 1 for translation in found)

    def translate(steps):
        for _ in range(steps):
            translator.translate(lines)
        return {"words": steps * words}

    return Work(translate)


def matrix_product(precision, width=2048):
    """Return products of two square matrices, to measure the peak rate."""
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
