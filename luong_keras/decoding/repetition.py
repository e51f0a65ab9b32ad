"""Words that would repeat what a hypothesis has said."""

from keras import ops

from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.word_marks import marked_words
from luong_keras.ops.sentence_rows import column


class NoRepeatedNgrams(Scorer):
    """Forbids every n-gram of words that a hypothesis has already.

    Args:
        size: n, 1 or more; or one for each sentence, (B,), where 0 forbids
            nothing and no one is above `MOST`.

    Raises:
        ValueError: for a number below 1.
    """

    per_sentence = ("size",)
    MOST = 8  # of sizes that are not known before the search

    def __init__(self, size):
        if isinstance(size, int) and size < 1:
            raise ValueError(
                f"`size` must be 1 or more. Received: size={size}. Leave the "
                "scorer out to allow repetition."
            )
        self.size = column(size)

    def start(self, batch, source_length, max_steps):
        # Behind the last word stands what no word is.
        return [ops.full((batch, 1, max_steps + 1), -1, dtype="int32")]

    def add(self, states, words, position):
        places = ops.arange(ops.shape(states[0])[2], dtype="int32")
        return [ops.where(places == position, words[..., None], states[0])]

    def suppressed(self, states, position, vocabulary_size):
        # (B, K, T), `position` words in each row.
        (words,) = states
        places = ops.arange(ops.shape(words)[2], dtype="int32")
        size = ops.reshape(ops.cast(self.size, "int32"), (-1, 1, 1))
        known = self.size if isinstance(self.size, int) else self.MOST
        # Places where an n-gram ended that begins with the last n - 1 words.
        repeats = (places < position) & (size > 0)
        for back in range(1, known):
            at = ops.maximum(position - back, 0)
            same = ops.roll(words, back, axis=2) == words[:, :, at, None]
            inside = (places >= back) & (position >= back)
            repeats = repeats & ((same & inside) | (size <= back))
        return marked_words(ops.where(repeats, words, -1), vocabulary_size)
