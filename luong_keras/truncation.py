"""Reports of lines that were cut, or whose translations were cut."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from luong_keras.tables import pluralize

_MAX_PLACES = 10


class TruncationWarning(UserWarning):
    """Warning of a cut sentence, a cut translation or an omitted phrase.

    Args:
        message: The text of the warning.
        places: The lines that the warning reports.
    """

    def __init__(
        self, message: str, places: TruncatedPlaces | None = None
    ) -> None:
        super().__init__(message)
        self.places = places or TruncatedPlaces()


class TruncatedPlaces:
    """Counter of the lines that were cut, with the first places.

    Args:
        limit: The maximum length of a line, as text.
        of_pairs: Whether the lines are pairs of a source and a target.

    Attributes:
        count: Number of lines that were cut.
        first: List of the places of the first of these lines.
        unfinished: Number of lines whose translation was cut at its maximum
            length.
        absent: Number of lines without a translation.

    Example:
        >>> places = TruncatedPlaces()
        >>> for place, truncated in enumerate([True, False, True]):
        ...     places.add(place, truncated)
        >>> places.count, places.first
        (2, [0, 2])
    """

    def __init__(self, limit: str = "", of_pairs: bool = False) -> None:
        self.limit, self.of_pairs = limit, of_pairs
        self.count, self.first = 0, list[int]()
        self.unfinished = self.absent = 0

    @property
    def any(self) -> bool:
        """True if there is anything to report."""
        return self.count + self.unfinished + self.absent > 0

    def add(
        self,
        place: int,
        truncated: bool,
        unfinished: bool = False,
        absent: bool = False,
    ) -> None:
        """Count a line."""
        self.count += truncated
        self.unfinished += unfinished
        self.absent += absent
        if truncated:
            self.first = sorted([*self.first, place])[:_MAX_PLACES]

    def extend(self, places: TruncatedPlaces, part: Sequence[int]) -> None:
        """Count the lines of a part.

        Args:
            places: The cut lines, with places in the part.
            part: The places of the part's lines in the whole.
        """
        self.limit, self.of_pairs = places.limit, places.of_pairs
        self.count += places.count
        self.unfinished += places.unfinished
        self.absent += places.absent
        first = [part[place] for place in places.first]
        self.first = sorted(self.first + first)[:_MAX_PLACES]

    def message(self, start: int = 1) -> str:
        """Return the report in one line.

        Args:
            start: The number of the first line: 1 in commands, 0 for places in
                a list.
        """
        lines = self._join_places(start)
        if self.of_pairs:
            return (
                f"{pluralize(self.count, 'pair')} ({lines}) "
                f"{'was' if self.count == 1 else 'were'} cut: a source or a "
                "target was longer than `decoding.max_source_length`, and only "
                "its beginning was read. Split these sentences, or raise the "
                "setting."
            )
        parts = [self._lines_message(lines)] if self.count else []
        if self.unfinished:
            parts.append(
                "Cut at the maximum length, without `</s>`: "
                f"{pluralize(self.unfinished, 'translation')} "
                "(`decoding.max_length_ratio`, `decoding.max_length_offset`)."
            )
        if self.absent:
            parts.append(
                f"Without a translation: {pluralize(self.absent, 'line')}. "
                "Their prefix, phrases and `no_repeat_ngram` leave no word, or "
                "the probabilities of the model are not finite."
            )
        return " ".join(parts)

    def _join_places(self, start: int) -> str:
        more = ", …" * (self.count > len(self.first))
        places = ", ".join(str(start + place) for place in self.first)
        return f"{'number' if start else 'place'} {places}{more}"

    def _lines_message(self, lines: str) -> str:
        return (
            f"Expected: sentences and prefixes of at most {self.limit}, and "
            "phrases of known words that fit into the translation. Received: "
            f"others in {self.count} of the lines ({lines}), "
            "translated from their beginning only, or without the phrase. "
            "Split these sentences or raise the setting, and leave these "
            "phrases out."
        )

    def print(self, what: str) -> None:
        """Print the report to standard error, if anything was cut.

        Args:
            what: The command or the step, before the report.
        """
        if self.any:
            print(f"{what}: {self.message()}", file=sys.stderr)

    def warn(self, stacklevel: int) -> None:
        """Warn once, or report to a `TruncationInParts`, if anything was cut.

        Args:
            stacklevel: 1 is the line that calls this method.
        """
        collector = _collector.get()
        if self.any and collector is not None:
            collector.places.extend(self, collector.part)
        elif self.any:
            warnings.warn(
                TruncationWarning(self.message(0), self),
                stacklevel=stacklevel + 1,
            )


class TruncationInParts:
    """Context that collects the truncations of all parts for one report.

    Other threads still get their own warnings.

    Attributes:
        part: The places of the next part's lines in the whole; set it before
            each part of several.
        places: The cut lines of all parts.

    Example:
        >>> with TruncationInParts() as caught:
        ...     for caught.part in (range(2), range(2, 4)):
        ...         cut = TruncatedPlaces()
        ...         cut.add(1, True)
        ...         cut.warn(stacklevel=1)
        >>> caught.places.count, caught.places.first
        (2, [1, 3])
    """

    def __init__(self) -> None:
        self.part: Sequence[int] = range(sys.maxsize)
        self.places = TruncatedPlaces()

    def __enter__(self) -> TruncationInParts:
        self._token = _collector.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _collector.reset(self._token)


_collector: ContextVar[TruncationInParts | None] = ContextVar(
    "collector", default=None
)


def cut_pairs(scored: Iterable[Any]) -> TruncatedPlaces:
    """Return the pairs that were cut before they were scored.

    Args:
        scored: Scored translations in their order; the `truncated` of each is
            True if one of its two texts was cut.

    Example:
        >>> from types import SimpleNamespace
        >>> cut_pairs([SimpleNamespace(truncated=False)]).any
        False
    """
    places = TruncatedPlaces(of_pairs=True)
    for place, translation in enumerate(scored):
        places.add(place, translation.truncated)
    return places
