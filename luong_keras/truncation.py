"""Tells of lines of which only the beginning was translated."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

_SHOWN = 10


class TruncationWarning(UserWarning):
    """Only the beginning of a sentence was read, or not all of its wishes.

    Args:
        message: what is told.
        places: the lines of which it is told.
    """

    def __init__(
        self, message: str, places: TruncatedPlaces | None = None
    ) -> None:
        super().__init__(message)
        self.places = places or TruncatedPlaces()


class TruncatedPlaces:
    """Counts the lines that were cut, and keeps the first places.

    Args:
        limit: how long they may be, in words.

    Example:
        >>> places = TruncatedPlaces()
        >>> for place, truncated in enumerate([True, False, True]):
        ...     places.add(place, truncated)
        >>> places.count, places.first
        (2, [0, 2])
    """

    def __init__(
        self, limit: str = "`max_source_tokens` of the contract"
    ) -> None:
        self.limit = limit
        self.count, self.first = 0, list[int]()

    def add(self, place: int, truncated: bool) -> None:
        """Takes note of a line."""
        self.count += truncated
        if truncated and len(self.first) < _SHOWN:
            self.first.append(place)

    def extend(self, places: TruncatedPlaces, first: int) -> None:
        """Takes note of the lines of a part.

        Args:
            places: those of the part, from its beginning.
            first: the place at which the part begins.
        """
        self.limit = places.limit
        self.count += places.count
        room = _SHOWN - len(self.first)
        self.first += [first + place for place in places.first[:room]]

    def message(self) -> str:
        """What is told of these lines."""
        more = ", …" * (self.count > len(self.first))
        places = ", ".join(map(str, self.first)) + more
        return (
            f"Expected: sentences and prefixes of at most {self.limit}, and "
            "phrases that have room and known words. Received: others, "
            f"{self.count} of the lines (place {places}), translated by their "
            "beginning, or without the phrase. Split these sentences."
        )

    def warn(self, stacklevel: int) -> None:
        """Warns once, if there is one.

        Args:
            stacklevel: 1 is the line that calls this.
        """
        if self.count:
            warnings.warn(
                TruncationWarning(self.message(), self),
                stacklevel=stacklevel + 1,
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
