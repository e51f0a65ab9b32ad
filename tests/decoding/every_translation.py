"""All translations of a sentence by a small step function, by brute force."""

import itertools
import math

import numpy as np

from luong_keras.special_tokens import EOS_ID

SIZE = 6  # of the vocabulary: four of the special tokens are words here
MAX_LENGTH = 4  # symbols
WORDS = [word for word in range(SIZE) if word != EOS_ID]
# A beam that loses nothing: as many as there are beginnings.
ENOUGH = len(WORDS) ** MAX_LENGTH


def every_translation(step, sentence, maximum=MAX_LENGTH):
    """{words: log-probability with `</s>`}, at most `maximum` symbols."""
    found = {}
    for count in range(1, maximum):
        for words in itertools.product(WORDS, repeat=count):
            total = 0.0
            for t, word in enumerate((*words, EOS_ID)):
                total += step.log_probabilities(sentence, words[:t])[word]
            found[words] = total
    return found


def drawn_from(step, sentence, maximum, change):
    """{words: probability} when each word is drawn, `</s>` never first.

    `change` makes of log-probabilities the weights of the drawing.
    """
    found = {}

    def draw(words, probability):
        if len(words) == maximum:
            found[words] = probability
            return
        gains = step.log_probabilities(sentence, words).copy()
        if not words:
            gains[EOS_ID] = -math.inf
        weights = change(gains)
        weights = weights / weights.sum()
        for word in np.flatnonzero(weights):
            if word == EOS_ID:
                found[words] = probability * weights[word]
            else:
                draw((*words, int(word)), probability * weights[word])

    draw((), 1.0)
    return found


def contains(words, phrase):
    """Whether the phrase stands in the words."""
    size = len(phrase)
    return any(
        tuple(words[i : i + size]) == tuple(phrase)
        for i in range(len(words) - size + 1)
    )
