"""Sampling: words drawn at random.

The draws of a random generator depend on the batch: in another batch, on
another backend or on a server, a sentence would get other words. Here each
random number is a hash of the seed of the sentence, the hypothesis and the
step.
"""

import numpy as np
from keras import backend, ops

from luong_keras.decoding.argument_checks import (
    check_counts,
    check_numbers,
    check_one_or_each,
)
from luong_keras.decoding.strategy import IndependentSampler
from luong_keras.decoding.top_words import (
    NEVER,
    largest,
    log_probabilities,
)
from luong_keras.ops.backends import take_last
from luong_keras.ops.batch_compaction import number_or_tensor

# Shifts and odd factors of the hash: with them, each bit of a number changes
# each bit of the result with a probability of nearly one half.
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B))
_LAST_SHIFT = 16
_STRIDE = 0x9E3779B9  # 2**32 / the golden ratio: sets counters far apart


class Sampling(IndependentSampler):
    """K translations per sentence, drawn from the distribution of the model.

    Each number except `count` may be one number per sentence, (B,). The same
    seed draws the same words, on every backend, in every batch and in an
    export. Scores are the log-probabilities of the model at temperature 1
    over all words, as changed by the scorers; they rank the result.

    Args:
        count: K.
        temperature: Divisor of the logits: below 1, probable words become
            more probable.
        top_k: Draw from this many most probable words; None or 0 for all.
        top_p: Draw from the smallest set of words with this total probability
            (Holtzman et al. 2020), at the given temperature and after
            `top_k`; 1 for all. Words that tie with the last are included.
        seeds: (B,) int32 seeds, or one for all sentences; 0 when None.
        counts: (B,) number of samples of each sentence; K when None.

    Example:
    >>> Sampling(2, temperature=0.0)
    Traceback (most recent call last):
    ValueError: `temperature` must be positive. Received: temperature=0.0. ...
    """

    per_sentence = ("temperature", "top_k", "top_p", "seeds", "counts")

    def __init__(
        self,
        count=1,
        temperature=1.0,
        top_k=None,
        top_p=1.0,
        seeds=None,
        counts=None,
    ):
        super().__init__(count, counts)
        check_numbers(
            "positive",
            lambda numbers: numbers > 0,
            " For the most probable words search greedily or with a beam.",
            temperature=temperature,
            top_p=top_p,
        )
        self.temperature = number_or_tensor(temperature)
        self.top_k = check_one_or_each("top_k", top_k, 0, "0 for all")
        check_numbers("at most 1", lambda numbers: numbers <= 1, top_p=top_p)
        self.top_p = number_or_tensor(top_p)
        seeds = 0 if seeds is None else seeds
        self.seeds = check_counts(
            "seeds",
            seeds if np.ndim(seeds) else [seeds],
            -(2**31),
            2**31 - 1,
            "one per sentence, or one for all",
        )

    def pick(self, state, barred):
        gains = log_probabilities(state.logits, state.bonus)
        allowed = self._mask_gains(state, gains, barred)
        words = self._draw_words(state, allowed)
        gain = take_last(gains, words[..., None])[..., 0]
        is_possible = ops.max(allowed, axis=-1) > NEVER / 2
        return ops.where(is_possible, gain, NEVER), words

    def _mask_gains(self, state, gains, barred):
        """Divide gains by the temperature; excluded words get `NEVER`."""
        words = ops.arange(state.vocabulary_size, dtype="int32")
        forbidden = barred[..., None] & (words == state.eos_id)
        suppressed = state.suppressed
        if suppressed is not None:
            forbidden = forbidden | suppressed
        gains = ops.where(forbidden, NEVER, gains)
        best = ops.maximum(ops.max(gains, axis=-1, keepdims=True), NEVER)
        # Without the best gain, a division by a small number cannot overflow.
        temperature = _expand(self.temperature, gains.dtype)
        logits = (gains - best) / ops.maximum(temperature, 1e-30)
        logits = ops.where(forbidden, NEVER, logits)
        numbers = isinstance(self.top_p, int | float) and (
            self.top_k is None or isinstance(self.top_k, int)
        )
        if numbers and self.top_p >= 1 and not self.top_k:
            return logits
        threshold = self._least_logit(logits)
        return ops.where(logits >= threshold, logits, NEVER)

    def _least_logit(self, logits):
        """Return the smallest logit that may be drawn, (B, K, 1)."""
        size = ops.shape(logits)[-1]
        ranked, _ = largest(logits, size)
        if self.top_k is not None:
            top_k = _expand(self.top_k, "int32")
            ranks = ops.arange(size, dtype="int32")
            is_kept = (ranks < top_k) | (top_k < 1)
            ranked = ops.where(is_kept, ranked, NEVER)
        weights = ops.softmax(ranked, axis=-1)
        before = ops.cumsum(weights, axis=-1) - weights
        top_p = _expand(self.top_p, logits.dtype)
        # Rounding of the sum must not exclude a word where `top_p` is 1.
        is_kept = (ranked > NEVER / 2) & ((before < top_p) | (top_p >= 1))
        last = ops.sum(ops.cast(is_kept, "int32"), axis=-1, keepdims=True) - 1
        return take_last(ranked, ops.maximum(last, 0))

    def _draw_words(self, state, logits):
        """Draw one word per hypothesis by inverting the cumulative weights."""
        weights = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
        weights = ops.where(logits > NEVER / 2, weights, 0.0)
        # A parallel sum may rise and fall between words of weight 0.
        cumulative = ops.where(weights > 0, ops.cumsum(weights, axis=-1), -1.0)
        hypotheses = ops.arange(self.num_hypotheses, dtype="int32")
        seeds = ops.reshape(ops.cast(self.seeds, "int32"), (-1, 1))
        numbers = uniform(seeds, hypotheses, state.position)
        # The rounding of the product is smaller than 1 - `numbers`.
        threshold = ops.cast(numbers, cumulative.dtype)[..., None] * ops.max(
            cumulative, axis=-1, keepdims=True
        )
        # TensorFlow finds the maximum of floats alone on a GPU.
        reached = ops.cast(cumulative > threshold, cumulative.dtype)
        return ops.cast(ops.argmax(reached, axis=-1), "int32")


def _expand(value, dtype):
    """Reshape a number, or one number per sentence, to fit (B, K, V)."""
    return ops.reshape(ops.cast(value, dtype), (-1, 1, 1))


def uniform(*counters):
    """Hash integers of broadcastable shapes to random numbers in [0, 1).

    The result is float32, multiples of 2**-23, the same on every backend.

    Example:
    >>> import numpy as np
    >>> seeds = np.array([[1], [2]], "int32")
    >>> draws = np.array(uniform(seeds, np.arange(2), 0))
    >>> [f"{number:.3f}" for number in draws.ravel()]
    ['0.716', '0.937', '0.133', '0.251']
    """
    bits = _uint32(_STRIDE)
    for counter in counters:
        counter = ops.cast(ops.convert_to_tensor(counter, "int32"), "uint32")
        bits = _low_bits(bits + counter * _uint32(_STRIDE))
        for shift, factor in _ROUNDS:
            bits = _fold(bits, shift)
            bits = _low_bits(bits * _uint32(factor))
        bits = _fold(bits, _LAST_SHIFT)
    bits = ops.right_shift(bits, _uint32(9))
    return ops.cast(bits, "float32") * 2.0**-23


def _fold(bits, shift):
    return ops.bitwise_xor(bits, ops.right_shift(bits, _uint32(shift)))


def _uint32(value):
    return ops.convert_to_tensor(value, "uint32")


def _low_bits(number):
    """Keep the last 32 bits: torch computes with 64, as it has no uint32."""
    if backend.backend() != "torch":
        return number
    return ops.bitwise_and(number, _uint32(2**32 - 1))
