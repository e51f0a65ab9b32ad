"""Reports of lines that were cut, or whose translations were cut."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
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

    As a context, it also counts the lines of all calls within it, which then do
    not warn. Other threads still get their own warnings.

    Args:
        limit: The maximum length of a line, as text.
        of_pairs: Whether the lines are pairs of a source and a target.

    Attributes:
        count: Number of lines that were cut.
        unfinished: Number of lines whose translation was cut at its maximum
            length.
        absent: Number of lines without a translation.
        first: List of the places of the first lines that were cut.
        start: The place in the whole of the first line of the next call; set it
            before each part of several.

    Example:
        >>> with TruncatedPlaces() as whole:
        ...     for whole.start in (0, 2):
        ...         places = TruncatedPlaces()
        ...         for place, truncated in enumerate([False, True]):
        ...             places.add(place, truncated)
        ...         places.warn(stacklevel=1)
        >>> whole.count, whole.first
        (2, [1, 3])
    """

    def __init__(self, limit: str = "", of_pairs: bool = False) -> None:
        self.limit, self.of_pairs = limit, of_pairs
        self.count = self.unfinished = self.absent = self.start = 0
        self.first = list[int]()

    def __enter__(self) -> TruncatedPlaces:
        self._token = _collector.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _collector.reset(self._token)

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
            self.first = sorted([*self.first, self.start + place])[:_MAX_PLACES]

    def message(self, start: int = 1) -> str:
        """Return the report in one line.

        Args:
            start: The number of the first line: 1 in commands, 0 for places in
                a list.
        """
        more = ", …" * (self.count > len(self.first))
        places = ", ".join(str(start + place) for place in self.first)
        lines = f"{'number' if start else 'place'} {places}{more}"
        if self.of_pairs:
            return (
                f"{pluralize(self.count, 'pair')} ({lines}) "
                f"{'was' if self.count == 1 else 'were'} cut: a source or a "
                "target was longer than `decoding.max_source_length`, and only "
                "its beginning was read. Split these sentences, or raise the "
                "setting."
            )
        parts = []
        if self.count:
            parts.append(
                f"Expected: sentences and prefixes of at most {self.limit}, "
                "and phrases of at most 16 tokens, the required ones of known "
                "words, that fit into the translation. "
                f"Received: others in {self.count} of the lines ({lines}), "
                "translated from their beginning only, or without the phrase. "
                "Split these sentences or raise the setting, and leave these "
                "phrases out."
            )
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

    def print(self, what: str) -> None:
        """Print the report to standard error, if anything was cut.

        Args:
            what: The command or the step, before the report.
        """
        if self.any:
            print(f"{what}: {self.message()}", file=sys.stderr)

    def warn(self, stacklevel: int) -> None:
        """Warn once, or report to the context, if anything was cut.

        Args:
            stacklevel: 1 is the line that calls this method.
        """
        whole = _collector.get()
        if self.any and whole is not None:
            whole.limit, whole.of_pairs = self.limit, self.of_pairs
            whole.count += self.count
            whole.unfinished += self.unfinished
            whole.absent += self.absent
            first = [whole.start + place for place in self.first]
            whole.first = sorted(whole.first + first)[:_MAX_PLACES]
        elif self.any:
            warnings.warn(
                TruncationWarning(self.message(0), self),
                stacklevel=stacklevel + 1,
            )


_collector: ContextVar[TruncatedPlaces | None] = ContextVar(
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
