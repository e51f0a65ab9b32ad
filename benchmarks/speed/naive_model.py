"""The model, written only with Keras.

With `input_feeding`, `training` has the paper's decoder as a cell in
`keras.layers.RNN` that attends inside its step. Without it, `training` has
`keras.layers.LSTM` followed by `keras.layers.Attention`, which is another
model: attention does not reach the recurrence.
"""

import keras
from keras import layers, ops

from speed.batches import PAD_ID, read_batches
from speed.configurations import CONFIGURATIONS
from speed.keras_fit import ON_JAX, fitted, policy
from speed.worker import Work


class NaiveCell(layers.Layer):
    """Input feeding, LSTM cells, attention and eq. 5 inside one step."""

    def __init__(self, num_layers, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.lstm = layers.StackedRNNCells(
            [layers.LSTMCell(units) for _ in range(num_layers)]
        )
        self.score = layers.Dense(units, use_bias=False)
        self.combine = layers.Dense(units, activation="tanh", use_bias=False)
        self.state_size = [units] * (2 * num_layers + 1)
        self.output_size = units
        # Set before a call, because `keras.layers.RNN` passes only states.
        self.memory = self.mask = None

    def build(self, inputs_shape):
        width = inputs_shape[-1] + self.units
        self.lstm.build((inputs_shape[0], width))
        self.score.build((None, self.units))
        self.combine.build((None, 2 * self.units))
        self.built = True

    def call(self, inputs, states):
        *states, fed = states
        pairs = list(zip(states[::2], states[1::2], strict=True))
        hidden, pairs = self.lstm(ops.concatenate([inputs, fed], -1), pairs)
        scores = ops.einsum("bu,bsu->bs", self.score(hidden), self.memory)
        scores = ops.where(self.mask, scores, -1e4)
        weights = ops.softmax(scores, axis=-1)
        context = ops.einsum("bs,bsu->bu", weights, self.memory)
        vector = self.combine(ops.concatenate([context, hidden], -1))
        return vector, [*(s for pair in pairs for s in pair), vector]


class NaiveModel(keras.Model):
    """`keras.layers.LSTM` as encoder, a decoder with or without the cell."""

    def __init__(self, size, input_feeding, **kwargs):
        super().__init__(**kwargs)
        units, words = size.units, size.vocabulary_size
        self.source_embedding = layers.Embedding(words, units)
        self.target_embedding = layers.Embedding(words, units)
        self.encoder = _stack(size)
        self.input_feeding = input_feeding
        if input_feeding:
            self.cell = NaiveCell(size.layers, units)
            self.decoder = layers.RNN(self.cell, return_sequences=True)
        else:
            self.decoder = _stack(size)
            self.score = layers.Dense(units, use_bias=False)
            self.attention = layers.Attention()
            self.combine = layers.Dense(
                units, activation="tanh", use_bias=False
            )
        self.output_layer = layers.Dense(words)
        # The loss is computed in single precision.
        self.widen = layers.Activation("linear", dtype="float32")

    def call(self, inputs):
        source = inputs["source"]
        mask = ops.not_equal(source, PAD_ID)
        memory, states = self.source_embedding(source), []
        for layer in self.encoder:
            memory, *last = layer(memory, mask=mask)
            states += last
        decode = self._feeding if self.input_feeding else self._attending
        embedded = self.target_embedding(inputs["target_in"])
        vectors = decode(embedded, memory, mask, states)
        return self.widen(self.output_layer(vectors))

    def _feeding(self, embedded, memory, mask, states):
        self.cell.memory, self.cell.mask = memory, mask
        zeros = ops.zeros_like(states[0])
        return self.decoder(embedded, initial_state=[*states, zeros])

    def _attending(self, embedded, memory, mask, states):
        pairs = zip(states[::2], states[1::2], strict=True)
        hidden = embedded
        for layer, state in zip(self.decoder, pairs, strict=True):
            hidden, *_ = layer(hidden, initial_state=list(state))
        context = self.attention(
            [self.score(hidden), memory], mask=[None, mask]
        )
        return self.combine(ops.concatenate([context, hidden], -1))


def _stack(size):
    return [
        layers.LSTM(size.units, return_sequences=True, return_state=True)
        for _ in range(size.layers)
    ]


def training(configuration, batches, precision="float32", input_feeding=True):
    """Return training steps by `fit`, with Keras's loss and optimizer."""
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(policy(precision))
    model = NaiveModel(CONFIGURATIONS[configuration], input_feeding)
    model.compile(
        keras.optimizers.SGD(0.1, global_clipnorm=5.0),
        loss=keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=PAD_ID
        ),
        jit_compile=ON_JAX,
    )
    # Build the model, like all programs before their first step.
    batch = read_batches(batches)[0]
    model({name: array[:1] for name, array in batch.items()})
    run = fitted(model, batches, lambda batch: batch["target_out"])
    return Work(run, model.count_params())
