"""All translations of a sentence by a small step function, by brute force."""

import itertools
import math

import numpy as np

from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import symbol_log_probabilities

SIZE = 6  # of the vocabulary; special tokens except `</s>` are words here
MAX_LENGTH = 4  # words and `</s>`
WORDS = [word for word in range(SIZE) if word != EOS_ID]
# A beam of this size has room for all prefixes.
ENOUGH = len(WORDS) ** MAX_LENGTH


def every_translation(step, sentence, maximum=MAX_LENGTH):
    """Return {words: log-probability with `</s>`} up to `maximum` symbols."""
    return {
        words: sum(symbol_log_probabilities(step, sentence, (*words, EOS_ID)))
        for count in range(1, maximum)
        for words in itertools.product(WORDS, repeat=count)
    }


def sampling_distribution(step, sentence, maximum, sampling_weights):
    """Return {words: probability} of sampling, with `</s>` never first.

    `sampling_weights` maps log-probabilities to the weights of the draw.
    """
    found = {}

    def draw(words, probability):
        if len(words) == maximum:
            found[words] = probability
            return
        gains = step.log_probabilities(sentence, words).copy()
        if not words:
            gains[EOS_ID] = -math.inf
        weights = sampling_weights(gains)
        weights = weights / weights.sum()
        for word in np.flatnonzero(weights):
            if word == EOS_ID:
                found[words] = probability * weights[word]
            else:
                draw((*words, int(word)), probability * weights[word])

    draw((), 1.0)
    return found


def contains(words, phrase):
    """Test whether the words contain the phrase."""
    size = len(phrase)
    return any(
        tuple(words[i : i + size]) == tuple(phrase)
        for i in range(len(words) - size + 1)
    )
