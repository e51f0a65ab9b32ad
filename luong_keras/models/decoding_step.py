"""One step of a translator over the sentences of a batch."""

from keras import ops

from luong_keras.ops.batch_compaction import PerSentence


class DecodingStep(PerSentence):
    """The step function of a search, see `luong_keras.decoding.search`.

    Args:
        translation_model: whose decoder steps.
        memory: (B, S, M).
        mask: (B, S).
        words: (C,) the ids of a shortlist, or None for all words. What the
            step reads and gives are places among them then.
    """

    per_sentence = ("projected", "mask")

    def __init__(self, translation_model, memory, mask, words=None):
        self.translation_model = translation_model
        cell = translation_model.decoder.cell
        # Whatever a step reads is made ready here, once.
        self.weights = cell.loop_weights()
        self.output_weights = translation_model.projection.loop_weights(words)
        self.words = words
        projected = cell.project_memory(memory) or ()
        # Keys and values; what multiplies the context belongs to no sentence.
        self.projected, self.kernel = projected[:2], projected[2:]
        self.mask = mask

    def __call__(self, ids, states, position):
        """Logits (B, K, V), new states and attention weights (B, K, S)."""
        model = self.translation_model
        if self.words is not None:
            ids = ops.take(self.words, ids)
        states, alignments = model.decoder.cell.step(
            self.weights,
            model.project_words(ids),
            states,
            (*self.projected, *self.kernel) or None,
            self.mask,
            position,
        )
        vectors = ops.cast(states[-1], model.decoder.compute_dtype)
        if alignments is None:
            shape = (*ops.shape(ids), ops.shape(self.mask)[1])
            alignments = ops.zeros(shape, dtype=vectors.dtype)
        logits = model.projection.logits(vectors, self.output_weights)
        return logits, states, alignments
