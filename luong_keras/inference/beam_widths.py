"""A beam as wide as a batch asks for, of a few widths that a graph has."""

from __future__ import annotations


def beam_widths(most: int) -> list[int]:
    """The widths a graph has, ascending: a single hypothesis, half, and all.

    Each is a search of its own in the graph, which a server has to load.

    Example:
        >>> beam_widths(10), beam_widths(3), beam_widths(1)
        ([1, 5, 10], [1, 3], [1])
    """
    half = [-(-most // 2)] if most > 3 else []
    return sorted({1, *half, most})
