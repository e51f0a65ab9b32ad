"""Beam search over a Transformer decoder without a cache.

The task: sort digits. Like KerasHub's decoders, the decoder reads all previous
ids and the encoder's output, and returns the logits of every position.
`ModelStep(..., reads_prefix=True)` turns it into a step of the search.
"""

import argparse

import keras
import numpy as np
from keras import layers, ops

from luong_keras.decoding import ModelStep, beam_search

# Ids: 0 is padding, 2 begins and 3 ends a sequence, digit d is 4 + d.
START, END, FIRST, VOCABULARY = 2, 3, 4, 14
LENGTH, WIDTH = 8, 64


def make_data(count: int, seed: int):
    """Return sources, decoder inputs and targets."""
    random = np.random.default_rng(seed)
    source = random.integers(FIRST, VOCABULARY, (count, LENGTH))
    target = np.pad(np.sort(source), ((0, 0), (1, 1)))
    target[:, 0], target[:, -1] = START, END
    return source, target[:, :-1], target[:, 1:]


class Decoder(keras.Model):
    """Transformer decoder from ids (B, T) and memory (B, S, M) to logits."""

    def __init__(self):
        super().__init__()
        self.words = layers.Embedding(VOCABULARY, WIDTH)
        self.places = layers.Embedding(LENGTH + 1, WIDTH)
        self.own, self.cross = (
            layers.MultiHeadAttention(4, WIDTH // 4) for _ in range(2)
        )
        self.norms = [layers.LayerNormalization() for _ in range(3)]
        self.hidden = layers.Dense(4 * WIDTH, activation="relu")
        self.output_layer = layers.Dense(VOCABULARY)

    def call(self, ids, memory):
        x = self.words(ids) + self.places(ops.arange(ops.shape(ids)[1]))
        x = self.norms[0](x + self.own(x, x, use_causal_mask=True))
        x = self.norms[1](x + self.cross(x, memory))
        return self.output_layer(self.norms[2](self.hidden(x)))


def main(count: int = 5_000, epochs: int = 3, tested: int = 500):
    """Train a model and compare greedy search with a beam."""
    keras.utils.set_random_seed(1)
    encoder = layers.Embedding(VOCABULARY, WIDTH)  # Sorting needs no positions.
    decoder = Decoder()
    ids = [keras.Input((None,), dtype="int32") for _ in range(2)]
    model = keras.Model(ids, decoder(ids[1], encoder(ids[0])))
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    source, target_in, target_out = make_data(count, seed=1)
    model.fit([source, target_in], target_out, 100, epochs, verbose=2)

    source, _, expected = make_data(tested, seed=2)
    step = ModelStep(decoder, encoder(source), reads_prefix=True)
    for size in (1, 5):  # A beam of one is greedy search.
        found = beam_search(
            step, [], LENGTH + 1, beam_size=size, length_penalty=1.0
        )
        ids = ops.convert_to_numpy(found.ids)[:, 0]
        right = np.mean((ids == np.where(expected == END, 0, expected)).all(1))
        print(f"beam {size}: {right:.1%} right")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
