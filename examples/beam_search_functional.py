"""Beam search over two functional models: an LSTM encoder and decoder.

The task: write a number of three to nine digits backwards. One model is
trained. Two models that share its layers translate: an encoder, and a decoder
that `ModelStep` turns into a step of the search.
"""

import argparse

import keras
import numpy as np
from keras import layers

from luong_keras.decoding import ModelStep, beam_search, greedy_search

# Ids: 0 is padding, 2 begins and 3 ends a sequence, digit d is 4 + d.
START, END, FIRST, VOCABULARY = 2, 3, 4, 14
LONGEST, UNITS = 9, 128


def make_data(count: int, seed: int):
    """Return padded sources, decoder inputs and targets."""
    random = np.random.default_rng(seed)
    source = np.zeros((count, LONGEST), "int32")
    target = np.zeros((count, LONGEST + 2), "int32")
    for row, length in enumerate(random.integers(3, LONGEST + 1, count)):
        digits = random.integers(FIRST, VOCABULARY, length)
        source[row, :length] = digits
        target[row, : length + 2] = [START, *digits[::-1], END]
    return source, target[:, :-1], target[:, 1:]


# The layers, and the model for training.
source = keras.Input((None,), dtype="int32", name="source")
target = keras.Input((None,), dtype="int32", name="target")
embed_source = layers.Embedding(VOCABULARY, 32, mask_zero=True)
embed_target = layers.Embedding(VOCABULARY, 32)
encoder_lstm = layers.LSTM(UNITS, return_state=True)
decoder_lstm = layers.LSTM(UNITS, return_sequences=True, return_state=True)
softmax = layers.Dense(VOCABULARY, activation="softmax")

_, *states = encoder_lstm(embed_source(source))
vectors, *_ = decoder_lstm(embed_target(target), initial_state=states)
model = keras.Model([source, target], softmax(vectors))

# The two models for translation.
encoder = keras.Model(source, states)
given = [keras.Input((UNITS,), name="h"), keras.Input((UNITS,), name="c")]
vectors, *new = decoder_lstm(embed_target(target), initial_state=given)
decoder = keras.Model([target, *given], [softmax(vectors), *new])


def main(count: int = 12_000, epochs: int = 2, tested: int = 500):
    """Train a model and compare greedy search with a beam on new numbers."""
    keras.utils.set_random_seed(1)
    model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(ignore_class=0),
        jit_compile=keras.backend.backend() == "jax",
    )
    source, target_in, target_out = make_data(count, seed=1)
    model.fit([source, target_in], target_out, 100, epochs, verbose=2)

    known = {*map(bytes, source)}
    source, _, expected = make_data(tested, seed=2)
    new = [bytes(row) not in known for row in source]
    source, expected = source[new], expected[new]
    step = ModelStep(decoder, from_logits=False)
    options = {"max_lengths": LONGEST + 1, "length_penalty": 1.0}
    for name, found in (
        ("greedy", greedy_search(step, encoder(source), **options)),
        ("beam 5", beam_search(step, encoder(source), beam_size=5, **options)),
    ):
        ids = keras.ops.convert_to_numpy(found.ids)[:, 0]
        right = np.mean((ids == np.where(expected == END, 0, expected)).all(1))
        score = keras.ops.convert_to_numpy(found.scores)[:, 0].mean()
        print(
            f"{name}: {right:.1%} right, log-probability a symbol {score:.3f}"
        )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
