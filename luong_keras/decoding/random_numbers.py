"""Random numbers that are a function of what they are for.

A generator's draws belong to the batch that asks for them: in another batch,
on another backend or on a server, a sentence would get other ones. Here each
number is a hash of the sentence's seed, the hypothesis, the step and, where
every word has one, the word.
"""

from keras import backend, ops

# Odd constants and shifts under which every bit of a number changes every
# other with a probability of nearly one half.
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B))
_LAST_SHIFT = 16
_STRIDE = 0x9E3779B9  # 2**32 / the golden ratio: sets counters far apart


def uniform(*counters):
    """Numbers of [0, 1) for integers that fit each other's shapes.

    float32, multiples of 2**-23; the same on every backend.

    Example:
    >>> import numpy as np
    >>> seeds = np.array([[1], [2]], "int32")
    >>> found = np.array(uniform(seeds, np.arange(2), 0))
    >>> [f"{number:.3f}" for number in found.ravel()]
    ['0.716', '0.937', '0.133', '0.251']
    """
    bits = ops.right_shift(_hash(counters), _number(9))
    return ops.cast(bits, "float32") * 2.0**-23


def gumbel(*counters):
    """Numbers of the standard Gumbel distribution, as `uniform`."""
    # In the middle of its interval, no number is 0 or 1.
    return -ops.log(-ops.log(uniform(*counters) + 2.0**-24))


def _hash(counters):
    bits = _number(_STRIDE)
    for counter in counters:
        counter = ops.cast(ops.convert_to_tensor(counter, "int32"), "uint32")
        bits = _mixed(_low_bits(bits + counter * _number(_STRIDE)))
    return bits


def _mixed(bits):
    for shift, factor in _ROUNDS:
        bits = ops.bitwise_xor(bits, ops.right_shift(bits, _number(shift)))
        bits = _low_bits(bits * _number(factor))
    return ops.bitwise_xor(bits, ops.right_shift(bits, _number(_LAST_SHIFT)))


def _number(value):
    return ops.convert_to_tensor(value, "uint32")


def _low_bits(number):
    """The last 32 bits; torch computes with all 64, as it has no uint32."""
    if backend.backend() != "torch":
        return number
    return ops.bitwise_and(number, _number(2**32 - 1))
