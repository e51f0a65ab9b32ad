"""Phrases that a translation must not have, or must have."""

from keras import ops

from luong_keras.decoding.scorers import Scorer, marked_words
from luong_keras.ops.batch_compaction import PerSentence


class PhraseProgress(PerSentence):
    """The number of words of each phrase that a hypothesis ends with.

    The longest beginning of a phrase that is an end of the hypothesis, as a
    string matching automaton finds it: after "a a" the next "a" of "a a b" is
    still the second.

    Args:
        words: (B, P, L) ids of P phrases a sentence.
        lengths: (B, P) how many words each has; 0 for no phrase.
    """

    per_sentence = ("words", "lengths", "borders")

    def __init__(self, words, lengths):
        words = ops.cast(words, "int32")
        self.lengths = ops.cast(lengths, "int32")
        places = ops.arange(ops.shape(words)[2], dtype="int32")
        inside = places < self.lengths[..., None]
        self.words = ops.where(inside, words, -1)
        self.borders = self._borders(self.words, places)

    @staticmethod
    def _borders(words, places):
        """Mask: the first m words of a phrase are the last of its first i.

        Boolean (B, P, L, L), at [i, m].
        """
        i, m = places[:, None, None], places[None, :, None]
        at = ops.clip(i - m + places, 0, ops.shape(words)[2] - 1)  # (i, m, j)
        batch, count, size = ops.shape(words)
        ends = ops.take(words, ops.reshape(at, (-1,)), axis=2)
        ends = ops.reshape(ends, (batch, count, size, size, size))
        same = (ends == words[:, :, None, None]) | (places >= m)
        return ops.all(same, axis=-1) & (i >= m)[..., 0]

    def after(self, progress, words):
        """The progress (B, K, P) of hypotheses continued by words (B, K)."""
        places = ops.arange(ops.shape(self.words)[2], dtype="int32")
        # What the phrases could continue from, (B, K, P, L): [m] whether m
        # words are there that the new word may follow.
        here = progress[..., None, None] == places[:, None]
        begun = ops.any(here & self.borders[:, None], axis=-2)
        fits = begun & (self.words[:, None] == words[..., None, None])
        return ops.max(ops.where(fits, places + 1, 0), axis=-1)

    def next_words(self, progress):
        """The next word of each phrase, (B, K, P); -1 at its end."""
        places = ops.arange(ops.shape(self.words)[2], dtype="int32")
        here = progress[..., None] == places
        return ops.max(ops.where(here, self.words[:, None], -1), axis=-1)


class ForbiddenPhrases(Scorer):
    """Keeps phrases out of every hypothesis.

    Args:
        words: (B, P, L) ids of P phrases for each sentence; B may be 1 for
            all of them.
        lengths: (B, P) how many words each has; 0 for no phrase.
    """

    per_sentence = ("phrases",)

    def __init__(self, words, lengths):
        self.phrases = PhraseProgress(words, lengths)

    def start(self, batch, source_length, max_steps):
        count = ops.shape(self.phrases.words)[1]
        return [ops.zeros((batch, 1, count), dtype="int32")]

    def add(self, states, words, position):
        return [self.phrases.after(states[0], words)]

    def suppressed(self, states, position, vocabulary_size):
        (progress,) = states
        last = progress + 1 == self.phrases.lengths[:, None]
        words = ops.where(last, self.phrases.next_words(progress), -1)
        return marked_words(words, vocabulary_size)
