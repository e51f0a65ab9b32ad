"""A beam as wide as a batch asks for, of a few widths that a graph has."""

from __future__ import annotations

from collections.abc import Callable

from luong_keras.decoding.hypotheses import Hypotheses
from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


def beam_widths(most: int) -> list[int]:
    """The widths a graph has, ascending: a single hypothesis, half, and all.

    Each is a search of its own in the graph, which a server has to load.

    Example:
        >>> beam_widths(10), beam_widths(3), beam_widths(1)
        ([1, 5, 10], [1, 3], [1])
    """
    half = [-(-most // 2)] if most > 3 else []
    return sorted({1, *half, most})


def search_as_wide(
    search: Callable[[int], Hypotheses], beams: tf.Tensor, most: int
) -> Hypotheses:
    """The search of the smallest width that every sentence's beam fits into.

    Args:
        search: gives the `Hypotheses` of a beam of that many.
        beams: (B,) the beam of each sentence, at most `most`.
        most: the largest beam.
    """
    widths = beam_widths(most)
    largest = tf.reduce_max(beams)
    narrower = tf.reduce_sum(tf.cast(largest > widths[:-1], tf.int32))
    branches = [lambda width=width: tuple(search(width)) for width in widths]
    return Hypotheses(*tf.switch_case(narrower, branches))
