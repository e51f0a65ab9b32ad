"""User-defined decoders, and their probabilities without a search.

Each reads sources (B, S) padded with 0. `prepare` returns the step and the
first states of a search; `log_probabilities` calls the models as in training,
with all words of a prefix at once.
"""

import functools
import itertools

import keras
import numpy as np
from keras import layers, ops

from luong_keras.decoding import ModelStep
from luong_keras.special_tokens import BOS_ID
from tests.decoding.every_translation import MAX_LENGTH, SIZE, WORDS
from tests.decoding.toy_step import log_softmax

SOURCES = np.array(
    [[5, 3, 4, 1], [4, 4, 0, 0], [1, 5, 2, 0], [3, 0, 0, 0], [2, 1, 1, 5]],
    "int32",
)
UNITS = 8


def embedding(units=UNITS):
    return layers.Embedding(
        SIZE, units, keras.initializers.RandomNormal(stddev=1.0)
    )


def dense(units=SIZE, activation=None):
    # Large weights, for probabilities that differ clearly.
    return layers.Dense(
        units,
        activation,
        kernel_initializer=keras.initializers.RandomNormal(stddev=1.0),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
    )


class SmallDecoder:
    """Base class of the decoders.

    `prepare(sources, kind)` returns the step (a `kind`) and the first states;
    `logits(source, ids)`, of (S,) and (N, T), those after each id, (N, T, V).
    """

    def log_probabilities(self, sentence, words):
        """Return log p(. | words) of a sentence of `SOURCES`, (V,) float64."""
        return self._table(sentence)[tuple(words)]

    @functools.cache  # noqa: B019
    def _table(self, sentence):
        every = itertools.product(WORDS, repeat=MAX_LENGTH - 1)
        ids = np.array([(BOS_ID, *words) for words in every], "int32")
        logits = self.logits(SOURCES[sentence], ids)
        rows = log_softmax(ops.convert_to_numpy(logits))
        return {
            tuple(ids[n, 1 : t + 1].tolist()): rows[n, t]
            for n in range(len(ids))
            for t in range(MAX_LENGTH)
        }


class FunctionalPair(SmallDecoder):
    """A training model whose layers make an encoder and a decoder model."""

    def __init__(self):
        source = keras.Input((None,), dtype="int32")
        target = keras.Input((None,), dtype="int32")
        _, *states = layers.LSTM(UNITS, return_state=True)(embedding()(source))
        embed, output = embedding(), dense(activation="softmax")
        lstm = layers.LSTM(UNITS, return_sequences=True, return_state=True)
        vectors, *_ = lstm(embed(target), initial_state=states)
        self.training = keras.Model([source, target], output(vectors))
        self.encoder = keras.Model(source, states)
        given = [keras.Input((UNITS,)), keras.Input((UNITS,))]
        vectors, *new = lstm(embed(target), initial_state=given)
        self.decoder = keras.Model([target, *given], [output(vectors), *new])

    def prepare(self, sources, kind=ModelStep):
        return kind(self.decoder, from_logits=False), self.encoder(sources)

    def logits(self, source, ids):
        sources = np.repeat(source[None], len(ids), axis=0)
        return ops.log(self.training([sources, ids]))


class AttentiveDecoder(layers.Layer):
    """A subclassed decoder that reads one word per call, for eager loops."""

    def __init__(self):
        super().__init__()
        self.embedding = embedding()
        self.cell = layers.GRUCell(UNITS)
        self.output_layer = dense()

    def call(self, ids, hidden, memory, mask):
        hidden, _ = self.cell(self.embedding(ids)[:, 0], [hidden])
        # `layers.Attention` of Keras 3.10 takes no mask (N, S) of its value.
        scores = ops.sum(hidden[:, None] * memory, axis=-1)
        weights = ops.softmax(ops.where(mask, scores, -1e9))[:, None]
        context = ops.matmul(weights, memory)
        both = ops.concatenate([context[:, 0], hidden], axis=-1)
        return self.output_layer(both), hidden, weights


class SubclassedDecoder(SmallDecoder):
    """A decoder with a state, two constants and attention weights."""

    def __init__(self):
        self.memory = embedding()
        self.decoder = AttentiveDecoder()

    def prepare(self, sources, kind=ModelStep):
        memory = self.memory(sources)
        step = kind(
            self.decoder,
            [memory, ops.not_equal(sources, 0)],
            return_attention_scores=True,
        )
        return step, ops.mean(memory, axis=1)

    def outputs(self, source, ids):
        """Return the logits and the attention weights of all steps."""
        memory = ops.repeat(self.memory(source[None]), len(ids), axis=0)
        mask = np.repeat(source[None] != 0, len(ids), axis=0)
        hidden, results = ops.mean(memory, axis=1), []
        for t in range(ids.shape[1]):
            logits, hidden, weights = self.decoder(
                ids[:, t : t + 1], hidden, memory, ops.convert_to_tensor(mask)
            )
            results.append((logits, weights[:, 0]))
        return (ops.stack(each, axis=1) for each in zip(*results, strict=True))

    def logits(self, source, ids):
        return next(self.outputs(source, ids))


class TransformerDecoder(keras.Model):
    """A Transformer decoder of one layer, which reads all ids so far."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = embedding(), layers.Embedding(9, UNITS)
        self.self_attention, self.cross_attention = (
            layers.MultiHeadAttention(2, 4) for _ in range(2)
        )
        self.output_layer = dense()

    def call(self, ids, memory, mask):
        x = self.words(ids) + self.positions(ops.arange(ops.shape(ids)[1]))
        x = x + self.self_attention(x, x, use_causal_mask=True)
        x = x + self.cross_attention(x, memory, attention_mask=mask[:, None])
        return self.output_layer(x)


class PrefixDecoder(SmallDecoder):
    """A decoder without a cache."""

    def __init__(self):
        self.memory = embedding()
        self.decoder = TransformerDecoder()

    def prepare(self, sources, kind=ModelStep):
        constants = [self.memory(sources), ops.not_equal(sources, 0)]
        return kind(self.decoder, constants, reads_prefix=True), []

    def logits(self, source, ids):
        memory = ops.repeat(self.memory(source[None]), len(ids), axis=0)
        mask = np.repeat(source[None] != 0, len(ids), axis=0)
        rows = [
            self.decoder(ids[:, : t + 1], memory, ops.convert_to_tensor(mask))
            for t in range(ids.shape[1])
        ]
        return ops.stack([row[:, -1] for row in rows], axis=1)


DECODERS = {
    "functional": FunctionalPair,
    "subclassed": SubclassedDecoder,
    "prefix": PrefixDecoder,
}
