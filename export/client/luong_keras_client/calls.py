"""What a call needs of time: batches of its lines, and repetitions of each."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import tenacity

from luong_keras_client.errors import (
    OF_ANOTHER_REQUEST,
    UNREADABLE,
    TextTooLongError,
    TranslationServerError,
    TruncatedPlaces,
    wrong,
)
from luong_keras_client.requests import Question, Result
from luong_keras_client.responses import CONTRACTS

# The server is away or has too much to do: no request changes anything, so
# it may be sent again. One whose time ran out is not: a server that is too
# slow would only have more to do.
_MAY_PASS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
# Told with the same code, and would be told again: of a message that is too
# large, and of a request that waited in a queue for as long as it may.
_WILL_NOT_PASS = ("larger than max", "timeout exceeded while waiting")


@dataclass(frozen=True)
class Settings:
    """How a client asks; see `TranslationClient`."""

    timeout: float
    request_timeout: float | None
    attempts: int
    batch_size: int
    concurrency: int
    alignment_step: str

    def __post_init__(self) -> None:
        """Refuses what cannot be."""
        for name, value in vars(self).items():
            if name.endswith("timeout"):
                fits = value is None or 0 < value < float("inf")
                expected = "seconds of more than 0"
            elif name == "alignment_step":
                fits = value in ("produces", "reads")
                expected = "'produces' or 'reads'"
            else:
                fits = isinstance(value, int) and value >= 1
                expected = "a number of 1 or more"
            if not fits:
                raise wrong(f"`{name}`, {expected}", repr(value))


def waiting_time(attempt: int) -> float:
    """Seconds to wait after an attempt, 1 the first: later and later.

    Of several clients that were refused together not all come back at once.
    """
    return min(0.1 * 2 ** min(attempt - 1, 10), 8) * random.uniform(0.5, 1)


class Attempts:
    """The attempts of one request.

    Args:
        settings: how often it is sent, and for how long.
        signature: that is asked; None for the status.
        where: the model and its address, for errors.
        deadline: by `time.monotonic()`.
        hide: takes out of a text what no error may show.
    """

    def __init__(
        self,
        settings: Settings,
        signature: str | None,
        where: str,
        deadline: float,
        hide: Callable[[str], str],
    ) -> None:
        self._signature, self._where, self._hide = signature, where, hide
        self._settings, self._deadline, self._count = settings, deadline, 0
        self.policy: dict[str, Any] = {
            "retry": tenacity.retry_if_exception(_may_pass),
            "wait": _wait,
            "stop": tenacity.stop_after_attempt(settings.attempts)
            | tenacity.stop_before_delay(deadline - time.monotonic()),
            "reraise": True,
        }

    def seconds(self) -> float:
        """What is left for the next attempt."""
        self._count += 1
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TranslationServerError("no time is left", "DEADLINE_EXCEEDED")
        return min(left, self._settings.request_timeout or left)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Adds to an error what was asked for, how often, and what to do."""
        try:
            yield
        except TranslationServerError as error:
            what = f"an answer of signature {self._signature!r} of"
            if self._signature is None:
                what = "the status of"
            if self._signature == "contract":
                versions = " or ".join(map(str, CONTRACTS))
                what = f"a translator of contract {versions}, as"
                if "signature" in str(error).lower() and error.code in (
                    *("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"),
                ):
                    error = TranslationServerError(
                        "a model without one", "CONTRACT"
                    )
            raise error.explained(
                f"{what} {self._where} within {self._settings.timeout} s",
                self._count,
                self._hide,
            ) from None


def _may_pass(error: BaseException) -> bool:
    told = str(error)
    if getattr(error, "code", None) in _MAY_PASS:
        return not any(text in told for text in _WILL_NOT_PASS)
    return isinstance(error, TranslationServerError) and any(
        text in told for text in OF_ANOTHER_REQUEST
    )


def _wait(state: tenacity.RetryCallState) -> float:
    assert state.outcome is not None
    asked = getattr(state.outcome.exception(), "retry_after", None) or 0
    # Not all come back when the time is over.
    return asked + waiting_time(state.attempt_number)


def understood(read: Callable[[], Any]) -> Any:
    """What an answer says; an error where it cannot be read."""
    try:
        return read()
    except UNREADABLE as error:
        raise TranslationServerError(
            f"an answer with {error!r}", "MALFORMED"
        ) from None


class Batches(Generic[Result]):
    """The lines of a question in requests of like length.

    Workers take requests from it until there are none. A failure keeps what
    is not sent yet from being sent; what is in flight then is kept. Rows that
    a server joined with too many of others go again in smaller requests.
    """

    def __init__(
        self,
        question: Question[Result],
        settings: Settings,
        max_rows: int,
        max_text_bytes: int,
    ) -> None:
        self.question, self.failure = question, None
        self._limit, self._attempts = max_text_bytes, settings.attempts
        self._results: list[Any] = [None] * len(question)
        self._too_long: list[int] = []
        lengths = [len(x) for x in next(iter(question.columns.values()))]
        order = np.argsort(lengths, kind="stable")
        size = min(settings.batch_size, max_rows)
        # Places, and how often they were among too many.
        self._waiting = deque(
            (order[start : start + size], 0)
            for start in range(0, len(order), size)
        )
        self.workers = min(settings.concurrency, len(self._waiting))

    failure: BaseException | None

    def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
        """The places of each request that is to be sent."""
        while self._waiting and self.failure is None:
            try:
                yield self._waiting.popleft()
            except IndexError:  # Another thread was faster.
                return

    @contextmanager
    def noting_failures(self) -> Iterator[None]:
        """Keeps an error for `answers`."""
        try:
            yield
        except Exception as error:
            self.failure = self.failure or error

    def take(self, places: np.ndarray, sent: int, rows: list[Any]) -> None:
        """Takes what each row of a request says."""
        again = []
        for place, row in zip(places, rows, strict=True):
            if row is True:
                again.append(place)
            elif row is False:
                self._too_long.append(int(place))
            else:
                self._results[place] = row
        if again and sent == self._attempts:
            raise TranslationServerError(
                f"Expected: requests of at most {len(places)} rows to be "
                "translated. Received: TOO_MANY_ROWS, time and again. The "
                "server joins more rows than the export takes: lower "
                "max_batch_size in its batching.config to `max_rows` of the "
                "contract, or ask later.",
                "RESOURCE_EXHAUSTED",
            )
        size = max(1, len(places) // 2)
        for start in range(0, len(again), size):
            part = np.array(again[start : start + size])
            self._waiting.append((part, sent + 1))

    def _check(self) -> None:
        """Raises what is wrong, with all that was answered."""
        question, error = self.question, self.failure
        if error is None and self._too_long:
            places = sorted(self._too_long)
            error = TextTooLongError(
                [question.first + place for place in places],
                question.size(places[0]),
                self._limit,
            )
        if isinstance(error, TranslationServerError):
            error.results = self._results
        if error is not None:
            raise error

    def answers(self, stacklevel: int) -> list[Result]:
        """What the user gets, with one warning of lines that were cut."""
        self._check()
        places = TruncatedPlaces()
        for place, result in enumerate(self._results):
            places.add(place, self.question.cut(result))
        places.warn(stacklevel + 1)
        return [self.question.final(result) for result in self._results]

    def part_of_stream(self, places: TruncatedPlaces) -> Iterator[Result]:
        """The answers before the first that is missing, and its error."""
        for place, result in enumerate(self._results, self.question.first):
            if result is None:
                break
            places.add(place, self.question.cut(result))
            yield self.question.final(result)
        self._check()


def start(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Begins work in a thread that no exit waits for."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
