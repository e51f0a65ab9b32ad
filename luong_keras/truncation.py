"""Tells of lines of which only the beginning was translated."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

_SHOWN = 10


class TruncationWarning(UserWarning):
    """Only the beginning of a sentence, or of its prefix, was read."""


class TruncatedPlaces:
    """Counts the lines that were cut, and keeps the first places.

    Example:
        >>> places = TruncatedPlaces()
        >>> for place, truncated in enumerate([True, False, True]):
        ...     places.add(place, truncated)
        >>> places.count, places.first
        (2, [0, 2])
    """

    def __init__(self) -> None:
        self.count, self.first = 0, list[int]()

    def add(self, place: int, truncated: bool) -> None:
        """Takes note of a line."""
        self.count += truncated
        if truncated and len(self.first) < _SHOWN:
            self.first.append(place)

    def warn(self, stacklevel: int) -> None:
        """Warns once, if there is one.

        Args:
            stacklevel: 1 is the line that calls this.
        """
        if self.count:
            more = ", …" * (self.count > len(self.first))
            places = ", ".join(map(str, self.first)) + more
            warnings.warn(
                "Expected: sentences and prefixes of at most "
                "`max_source_tokens` of the contract. Received: longer ones, "
                f"{self.count} of the lines (place {places}), of which the "
                "beginning was translated. Split these sentences.",
                TruncationWarning,
                stacklevel + 1,
            )


def warn_of(truncated: Iterable[bool], stacklevel: int) -> None:
    """Warns of the lines of one call.

    Args:
        truncated: whether each was cut.
        stacklevel: 1 is the line that calls this.
    """
    places = TruncatedPlaces()
    for place, cut in enumerate(truncated):
        places.add(place, cut)
    places.warn(stacklevel + 1)
