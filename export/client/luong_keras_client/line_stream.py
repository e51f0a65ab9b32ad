"""Any number of lines as questions of bounded size, and back as texts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from luong_keras.inference.search_options import Option, refuse_one_line
from luong_keras.inference.translation import TranslatedText
from luong_keras.truncation import TruncatedPlaces
from luong_keras_client import questions
from luong_keras_client.served_translator import Call, ServedTranslator
from luong_keras_client.server_error import TranslationServerError


@dataclass(frozen=True)
class FinishedPart:
    """What became of the lines that were sent together."""

    first: int
    found: list[TranslatedText | None]
    error: TranslationServerError | None = None

    def texts(self, places: TruncatedPlaces) -> Iterator[str]:
        """The translations before the first that is missing; its error."""
        for place, one in enumerate(self.found, self.first):
            if one is None:
                break
            places.add(place, one.truncated)
            yield one.text
        if self.error is not None:
            raise self.error


class LineStream:
    """Lines of one call that may be too many for the memory.

    Args:
        translator: that is asked.
        lines: to see at once whether they are lines.
        options: of the search, one value each.

    Attributes:
        part_size: lines that are sent together, so that those of like length
            share a request.
        parts_in_flight: two, so that the server has work while results are
            used; one where nothing shall be in flight beside it.
        places: of lines that were cut.
    """

    def __init__(
        self,
        translator: ServedTranslator,
        lines: object,
        options: Mapping[str, Option],
    ) -> None:
        refuse_one_line(lines)
        questions.check_single(options)
        settings = translator.settings
        self._translator, self._options = translator, options
        # All parts share the requests in flight; each has its own time.
        self._call = Call(None, asyncio.Semaphore(settings.concurrency))
        self.part_size = settings.batch_size * settings.concurrency
        self.parts_in_flight = 1 if settings.concurrency == 1 else 2
        self.places = TruncatedPlaces()

    def parts(
        self, lines: Iterable[str | bytes]
    ) -> Iterator[tuple[int, list[str | bytes]]]:
        """The lines, `part_size` at a time, and the place of the first."""
        lines = iter(lines)
        for first in itertools.count(0, self.part_size):
            part = list(itertools.islice(lines, self.part_size))
            if not part:
                return
            yield first, part

    async def answer(self, first: int, part: list[str | bytes]) -> FinishedPart:
        """Asks for the lines of one part."""
        question = questions.translation(part, self._options, first)
        try:
            found = await self._translator.answer(question, self._call)
        except TranslationServerError as error:
            return FinishedPart(first, error.results or [], error)
        return FinishedPart(first, list(found))
