"""Batches of the lines of a request, and their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from luong_keras_client.errors import (
    TextTooLongError,
    TranslationServerError,
    TruncatedPlaces,
)
from luong_keras_client.requests import Request
from luong_keras_client.responses import Contract


class Batches:
    """Batches of lines of similar length, which workers share.

    After a failure no more batches are sent, but requests in flight keep
    their results. If a server refuses rows because it joined too many, they
    are sent again in smaller batches.
    """

    def __init__(
        self,
        request: Request,
        contract: Contract,
        size: int,
        attempts: int,
        deadline: float,
        slots: Any,
    ) -> None:
        self.request, self.contract = request, contract
        self.deadline, self.slots = deadline, slots
        self.failure: BaseException | None = None
        self.following: Batches | None = None
        self._attempts = attempts
        self._results: list[Any] = [None] * len(request)
        self._too_long: list[int] = []
        lengths = [len(x) for x in next(iter(request.columns.values()))]
        order = np.argsort(lengths, kind="stable")
        size = min(size, contract.max_rows)
        starts = range(0, len(order), size)
        # Places, and how often a server refused them as too many rows.
        self.waiting = deque((order[x : x + size], 0) for x in starts)

    def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
        with suppress(IndexError):  # No batch is left.
            while self.failure is None:
                yield self.waiting.popleft()

    def fail(self, error: BaseException) -> None:
        """Send no more batches, nor those of the following lines."""
        self.failure = self.failure or error
        if self.following:
            self.following.fail(error)

    def take(self, places: np.ndarray, attempt: int, rows: Any) -> None:
        """Store the results of a request, and queue refused rows again."""
        refused = []
        for place, (status, result) in zip(places, rows, strict=True):
            self._results[place] = result
            if status == b"TEXT_TOO_LONG":
                self._too_long.append(int(place))
            elif status != b"OK":
                refused.append(place)
        if refused and attempt + 1 == self._attempts:
            raise TranslationServerError(
                f"Expected: requests of at most {len(places)} rows to be "
                "translated. Received: TOO_MANY_ROWS in every attempt. The "
                "server joins more rows than the export takes: lower "
                "max_batch_size in its batching.config to `max_rows` of the "
                "contract, or retry later.",
                "RESOURCE_EXHAUSTED",
            )
        size = max(1, len(places) // 2)
        for start in range(0, len(refused), size):
            part = np.array(refused[start : start + size])
            self.waiting.append((part, attempt + 1))

    def results(self, places: TruncatedPlaces) -> Iterator[Any]:
        """Yield results up to the first failed line, then raise its error."""
        request, error = self.request, self.failure
        if error is None and self._too_long:
            long = sorted(self._too_long)
            size, limit = request.size(long[0]), self.contract.max_text_bytes
            long = [request.first + place for place in long]
            error = TextTooLongError(long, size, limit)
        for place, found in enumerate(self._results, request.first):
            if found is None:
                break
            result, is_cut = found
            places.add(place, is_cut)
            yield result
        if isinstance(error, TranslationServerError):
            error.results = [found and found[0] for found in self._results]
        if error is not None:
            raise error
