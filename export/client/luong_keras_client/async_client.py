"""A client of a served translator for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import Any, Self, Unpack

import numpy as np
from tenacity import AsyncRetrying

from luong_keras_client import requests
from luong_keras_client.calls import Batches, understood, waiting_time
from luong_keras_client.client import BaseClient
from luong_keras_client.errors import TruncatedPlaces
from luong_keras_client.requests import (
    BeamSettings,
    Lines,
    NbestSettings,
    Option,
    Question,
    Result,
    SearchSettings,
)
from luong_keras_client.responses import (
    Contract,
    ScoredTranslation,
    TranslatedText,
    Translation,
    TranslationScore,
)


class AsyncTranslationClient(BaseClient):
    """Asks a translator in TensorFlow Serving, in an asyncio event loop.

    It has the arguments and the methods of `TranslationClient`, to be
    awaited. A call that is cancelled takes its requests with it. A client
    belongs to the event loop that used it first. `translate_lines` takes an
    asynchronous iterable as well.
    """

    _asynchronous = True
    _lock = asyncio.Lock

    async def translate(
        self, lines: Lines, **options: Unpack[SearchSettings]
    ) -> list[str]:
        return await self._ask(requests.translation(lines, options))

    def translate_lines(
        self,
        lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
        **options: Unpack[SearchSettings],
    ) -> AsyncIterator[str]:
        requests.check_stream(lines, options)
        return self._lines(lines, options)

    async def nbest(
        self, lines: Lines, **options: Unpack[NbestSettings]
    ) -> list[list[TranslatedText]]:
        return await self._ask(requests.nbest(lines, options))

    async def align(
        self, lines: Lines, rank: Option = 0, **options: Unpack[BeamSettings]
    ) -> list[Translation]:
        step = self._settings.alignment_step
        asked = {"rank": rank, **options}
        return await self._ask(requests.alignment(lines, asked, step))

    async def score(
        self, sources: Lines, targets: Lines
    ) -> list[TranslationScore]:
        return await self._ask(requests.pairs("score", sources, targets))

    async def align_pairs(
        self, sources: Lines, targets: Lines
    ) -> list[ScoredTranslation]:
        return await self._ask(requests.pairs("align_pair", sources, targets))

    async def encode(self, lines: Lines) -> list[np.ndarray]:
        return await self._ask(requests.encoding(lines))

    async def contract(self) -> Contract:
        return await self._agreed(self._deadline())

    async def status(self) -> dict[int, str]:
        return await self._send(self._status_request, self._deadline())

    async def aclose(self) -> None:
        connection, self._open, self._closed = self._open, None, True
        if connection is not None and self._home == self._here():
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _ask(self, question: Question[Result]) -> list[Result]:
        if not len(question):
            return []
        deadline = self._deadline()
        contract = await self._agreed(deadline)
        batches = self._batches(question, contract)
        await self._run(batches, contract, lambda: deadline)
        return batches.answers(stacklevel=3)

    async def _agreed(self, deadline: float) -> Contract:
        self._connection()
        async with self._asking:
            if self._known is None:
                self._known = await self._send(self._contract_request, deadline)
        return self._known

    async def _send(self, request: Any, deadline: float) -> Any:
        connection = self._connection()
        signature, message, read = request()
        attempts = self._attempts(signature, deadline)
        with attempts.explained():
            async for attempt in AsyncRetrying(**attempts.policy):
                with attempt:
                    answer = await connection.asend(message, attempts.seconds())
                    return understood(lambda: read(answer))

    async def _run(
        self,
        batches: Batches[Any],
        contract: Contract,
        deadline: Any,
        slots: AbstractAsyncContextManager[Any] = nullcontext(),
    ) -> None:
        async def work() -> None:
            with batches.noting_failures():
                for places, sent in batches:
                    if sent:
                        await asyncio.sleep(waiting_time(sent))
                    async with slots:
                        request = partial(
                            self._request, batches.question, places, contract
                        )
                        rows = await self._send(request, deadline())
                    batches.take(places, sent, rows)

        async with asyncio.TaskGroup() as group:
            for _ in range(batches.workers):
                group.create_task(work())

    async def _lines(self, lines: Any, options: Any) -> AsyncIterator[str]:
        slots = asyncio.Semaphore(self._settings.concurrency)
        waiting: deque[tuple[Batches[str], asyncio.Task[None]]] = deque()
        places = TruncatedPlaces()

        async def oldest() -> list[Any]:
            await waiting[0][1]
            return waiting.popleft()[0].part_of_stream(places)

        parts = self._any_parts(lines)
        try:
            async with aclosing(parts):
                async for first, part in parts:
                    question = requests.translation(part, options, first)
                    contract = await self._agreed(self._deadline())
                    batches = self._batches(question, contract)
                    work = self._run(batches, contract, self._deadline, slots)
                    waiting.append((batches, asyncio.create_task(work)))
                    if len(waiting) == self._parts_in_flight:
                        for text in await oldest():
                            yield text
            while waiting:
                for text in await oldest():
                    yield text
        finally:
            tasks = [task for _, task in waiting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        places.warn(stacklevel=2)

    async def _any_parts(self, lines: Any) -> AsyncIterator[tuple[int, Any]]:
        """Those of an asynchronous iterable as well."""
        if not isinstance(lines, AsyncIterable):
            for first, part in self._parts(lines):
                yield first, part
            return
        size = self._settings.batch_size * self._settings.concurrency
        part, first = [], 0
        async for line in lines:
            part.append(line)
            if len(part) == size:
                yield first, part
                part, first = [], first + size
        if part:
            yield first, part
