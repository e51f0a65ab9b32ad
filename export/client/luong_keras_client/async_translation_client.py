"""A client of a served translator for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Self, Unpack

import numpy as np

from luong_keras.inference.search_options import (
    BeamSettings,
    Lines,
    NbestSettings,
    Option,
    SearchSettings,
)
from luong_keras.inference.translation import (
    ScoredTranslation,
    TranslatedText,
    Translation,
    TranslationScore,
)
from luong_keras.truncation import warn_of
from luong_keras_client import questions
from luong_keras_client.base_client import BaseClient
from luong_keras_client.contract import Contract
from luong_keras_client.line_stream import FinishedPart, LineStream


class AsyncTranslationClient(BaseClient):
    """Asks a translator in TensorFlow Serving, in an asyncio event loop.

    It has the arguments and the methods of `TranslationClient`, to be
    awaited. A call that is cancelled takes its requests with it. A client
    belongs to the event loop that used it first.

    Example:
        >>> async def main():
        ...     url = "http://localhost:8501"
        ...     async with AsyncTranslationClient(url) as client:
        ...         return await client.translate([])
        >>> asyncio.run(main())
        []
    """

    async def translate(
        self, lines: Lines, **options: Unpack[SearchSettings]
    ) -> list[str]:
        """As `TranslationClient.translate`."""
        question = questions.translation(lines, options)
        found = await self._translator.answer(question)
        warn_of((one.truncated for one in found), stacklevel=2)
        return [one.text for one in found]

    def translate_lines(
        self,
        lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
        **options: Unpack[SearchSettings],
    ) -> AsyncIterator[str]:
        """As `TranslationClient.translate_lines`.

        Args:
            lines: may be an asynchronous iterable as well. Another one is
                read in the event loop and should not keep it waiting.
            **options: those of `translate`, one value each.
        """
        stream = LineStream(self._translator, lines, options)
        return self._lines(stream, lines)

    async def nbest(
        self, lines: Lines, **options: Unpack[NbestSettings]
    ) -> list[list[TranslatedText]]:
        """As `TranslationClient.nbest`."""
        found = await self._translator.answer(questions.nbest(lines, options))
        cut = [any(one.truncated for one in nbest) for nbest in found]
        warn_of(cut, stacklevel=2)
        return found

    async def align(
        self,
        lines: Lines,
        rank: Option = 0,
        **options: Unpack[BeamSettings],
    ) -> list[Translation]:
        """As `TranslationClient.align`."""
        step = self._settings.alignment_step
        question = questions.alignment(lines, rank, options, step)
        return await self._translator.answer(question)

    async def score(
        self, sources: Lines, targets: Lines
    ) -> list[TranslationScore]:
        """As `TranslationClient.score`."""
        question = questions.score(sources, targets)
        return await self._translator.answer(question)

    async def align_pairs(
        self, sources: Lines, targets: Lines
    ) -> list[ScoredTranslation]:
        """As `TranslationClient.align_pairs`."""
        question = questions.pair_alignment(sources, targets)
        return await self._translator.answer(question)

    async def encode(self, lines: Lines) -> list[np.ndarray]:
        """As `TranslationClient.encode`."""
        found = await self._translator.answer(questions.encoding(lines))
        warn_of((cut for _, cut in found), stacklevel=2)
        return [memory for memory, _ in found]

    async def contract(self) -> Contract:
        """As `TranslationClient.contract`."""
        return await self._translator.contract()

    async def status(self) -> dict[int, str]:
        """As `TranslationClient.status`."""
        return await self._translator.status()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._translator.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _lines(self, stream: LineStream, lines) -> AsyncIterator[str]:
        waiting: deque[asyncio.Task[FinishedPart]] = deque()
        parts = _parts_of_any(stream, lines)
        try:
            async with aclosing(parts):
                async for first, part in parts:
                    work = stream.answer(first, part)
                    waiting.append(asyncio.create_task(work))
                    if len(waiting) == stream.parts_in_flight:
                        done = await waiting[0]
                        waiting.popleft()
                        for text in done.texts(stream.places):
                            yield text
            while waiting:
                done = await waiting[0]
                waiting.popleft()
                for text in done.texts(stream.places):
                    yield text
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        stream.places.warn(stacklevel=2)


async def _parts_of_any(stream: LineStream, lines):
    """Those of the stream, also of an asynchronous iterable."""
    if not isinstance(lines, AsyncIterable):
        for first, part in stream.parts(lines):
            yield first, part
        return
    part, first = [], 0
    async for line in lines:
        part.append(line)
        if len(part) == stream.part_size:
            yield first, part
            part, first = [], first + len(part)
    if part:
        yield first, part
