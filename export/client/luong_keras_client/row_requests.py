"""The rows of one call in requests, several of them in flight."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from luong_keras_client.attempts import waiting_time
from luong_keras_client.contract import Contract
from luong_keras_client.questions import Question, Result
from luong_keras_client.server_error import (
    TextTooLongError,
    TranslationServerError,
)

OK, TOO_LONG, TOO_MANY = b"OK", b"TEXT_TOO_LONG", b"TOO_MANY_ROWS"
Rows = list[tuple[bytes, Any]]


@dataclass(frozen=True)
class _Request:
    """Rows to send; `sent` counts how often they were among too many."""

    places: np.ndarray
    sent: int = 0


class RowRequests(Generic[Result]):
    """Sends the rows of a question in batches of like length.

    A failure keeps what is not sent yet from being sent; what is in flight
    then is waited for, and kept. Rows that a server joined with too many of
    others are sent again in smaller requests.

    Args:
        question: what is asked.
        ask: sends the rows of some places; answers status and result of each.
        size: rows in a request.
        attempts: how often a row is sent again that was among too many.
    """

    def __init__(
        self,
        question: Question[Result],
        ask: Callable[[Question[Result], np.ndarray], Awaitable[Rows]],
        size: int,
        attempts: int,
    ) -> None:
        self._question, self._ask = question, ask
        self._attempts = attempts
        self._results: list[Any] = [None] * len(question)
        self._too_long: list[int] = []
        self._failure: Exception | None = None
        lengths = [len(x) for x in next(iter(question.columns.values()))]
        order = np.argsort(lengths, kind="stable")
        self._waiting = deque(
            _Request(order[start : start + size])
            for start in range(0, len(order), size)
        )

    async def results(
        self, concurrency: int, contract: Contract
    ) -> list[Result]:
        """The results of all rows.

        Raises:
            TranslationServerError: where some have none; it has the others.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(self._waiting))):
                group.create_task(self._work())
        if self._failure is None and self._too_long:
            sizes = self._question.sizes()
            places = sorted(self._too_long)
            first = self._question.first
            self._failure = TextTooLongError(
                [first + place for place in places],
                sizes[places[0]],
                contract.max_text_bytes,
            )
        if self._failure is not None:
            if isinstance(self._failure, TranslationServerError):
                self._failure.results = self._results
            raise self._failure
        return self._results

    async def _work(self) -> None:
        """Sends one request after the other."""
        while self._waiting and self._failure is None:
            request = self._waiting.popleft()
            if request.sent:
                await asyncio.sleep(waiting_time(request.sent))
            try:
                rows = await self._ask(self._question, request.places)
            except Exception as error:
                self._failure = self._failure or error
            else:
                self._take(request, rows)

    def _take(self, request: _Request, rows: Rows) -> None:
        again = []
        for place, (status, result) in zip(request.places, rows, strict=True):
            if status == OK:
                self._results[place] = result
            elif status == TOO_LONG:
                self._too_long.append(int(place))
            else:
                again.append(place)
        if again and request.sent == self._attempts:
            self._failure = self._failure or TranslationServerError(
                f"Expected: requests of at most {len(request.places)} rows to "
                "be translated. Received: TOO_MANY_ROWS, time and again. The "
                "server joins more rows than the export takes: lower "
                "max_batch_size in its batching.config to `max_rows` of the "
                "contract, or ask later.",
                "RESOURCE_EXHAUSTED",
            )
            return
        size = max(1, len(request.places) // 2)
        for start in range(0, len(again), size):
            places = np.array(again[start : start + size])
            self._waiting.append(_Request(places, request.sent + 1))
