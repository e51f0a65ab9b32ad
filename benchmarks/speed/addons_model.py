"""Peer in TensorFlow Addons: `AttentionWrapper` and its decoders."""

import tensorflow as tf
import tensorflow_addons as tfa
from tensorflow import keras

from speed.batches import (
    BOS_ID,
    PAD_ID,
    random_words,
    read_batches,
)
from speed.configurations import CONFIGURATIONS
from speed.worker import Work


class Translator(tf.Module):
    """Encoder, wrapped decoder cell and output layer."""

    def __init__(self, size):
        super().__init__()
        units, words = size.units, size.vocabulary_size
        self.source_embedding = self._embedding(words, units)
        self.target_embedding = self._embedding(words, units)
        self.encoder = [
            keras.layers.LSTM(units, return_sequences=True, return_state=True)
            for _ in range(size.layers)
        ]
        self.mechanism = tfa.seq2seq.LuongAttention(units)
        self.cell = tfa.seq2seq.AttentionWrapper(
            keras.layers.StackedRNNCells(
                [keras.layers.LSTMCell(units) for _ in range(size.layers)]
            ),
            self.mechanism,
            attention_layer=keras.layers.Dense(
                units, activation="tanh", use_bias=False
            ),
        )
        self.output_layer = keras.layers.Dense(words)
        self.trainer = tfa.seq2seq.BasicDecoder(
            self.cell, tfa.seq2seq.sampler.TrainingSampler()
        )

    @staticmethod
    def _embedding(words, units):
        start = tf.random.uniform([words, units], -0.1, 0.1)
        return tf.Variable(start)

    def start(self, source, copies=1):
        """Set the memory of the mechanism; return the first states."""
        memory = tf.nn.embedding_lookup(self.source_embedding, source)
        mask = tf.not_equal(source, PAD_ID)
        states = []
        for layer in self.encoder:
            memory, *last = layer(memory, mask=mask)
            states.append(last)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        if copies > 1:
            memory, lengths, states = tfa.seq2seq.tile_batch(
                (memory, lengths, states), multiplier=copies
            )
        self.mechanism.setup_memory(memory, memory_sequence_length=lengths)
        start = self.cell.get_initial_state(
            batch_size=tf.shape(memory)[0], dtype=tf.float32
        )
        return start.clone(cell_state=tuple(states))

    def loss(self, source, target_in, target_out):
        """Return the mean loss of the target words."""
        start = self.start(source)
        real = tf.not_equal(target_out, PAD_ID)
        outputs, _, _ = self.trainer(
            tf.nn.embedding_lookup(self.target_embedding, target_in),
            initial_state=start,
            sequence_length=tf.reduce_sum(tf.cast(real, tf.int32), 1),
        )
        logits = self.output_layer(outputs.rnn_output)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=target_out, logits=logits
        )
        weights = tf.cast(real, tf.float32)
        return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)


def training(configuration, batches):
    """Return training steps with SGD and a clipped gradient."""
    tf.random.set_seed(0)
    model = Translator(CONFIGURATIONS[configuration])
    optimizer = keras.optimizers.SGD(0.1, global_clipnorm=5.0)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids])
    def step(source, target_in, target_out):
        with tf.GradientTape() as tape:
            loss = model.loss(source, target_in, target_out)
        weights = tape.watched_variables()
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    data = [
        [tf.constant(array) for array in batch.values()]
        for batch in read_batches(batches)
    ]
    # Build the model, like all programs before their first step, on the longest
    # sentence, because the decoder stops when all sentences have ended.
    words = tf.reduce_sum(tf.cast(data[0][-1] != PAD_ID, tf.int32), 1)
    longest = int(tf.argmax(words))
    with tf.GradientTape() as tape:
        model.loss(*(array[longest : longest + 1] for array in data[0]))
    parameters = sum(int(tf.size(v)) for v in tape.watched_variables())

    def run(steps):
        for number in range(steps):
            loss = step(*data[number % len(data)])
        return {"loss": float(loss)}

    return Work(run, parameters)


def decoding(configuration, batch_size, beam_size, length):
    """Return a search of `length` words for sentences of `length` words."""
    tf.random.set_seed(0)
    size = CONFIGURATIONS[configuration]
    model = Translator(size)
    options = {
        "output_layer": model.output_layer,
        "maximum_iterations": length,
    }
    if beam_size > 1:
        decoder = tfa.seq2seq.BeamSearchDecoder(
            model.cell, beam_width=beam_size, **options
        )
    else:
        decoder = tfa.seq2seq.BasicDecoder(
            model.cell, tfa.seq2seq.sampler.GreedyEmbeddingSampler(), **options
        )
    source = tf.constant(random_words(size, batch_size, length))

    @tf.function
    def search(source):
        start = model.start(source, beam_size)
        found, _, _ = decoder(
            model.target_embedding,
            start_tokens=tf.fill([batch_size], BOS_ID),
            end_token=size.vocabulary_size,  # no word: nothing ends
            initial_state=start,
        )
        return found.predicted_ids if beam_size > 1 else found.sample_id

    def run(steps):
        for _ in range(steps):
            ids = search(source).numpy()
        return {"length": ids.shape[1]}

    return Work(run)
