"""Asks a server again, where that may help and time is left."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from luong_keras_client.server_error import (
    OF_ANOTHER_REQUEST,
    TranslationServerError,
)

Answer = TypeVar("Answer")
# The server is away or has too much to do: no request changes anything, so
# it may be sent again. One whose time ran out is not: a server that is too
# slow would only have more to do.
_MAY_PASS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
# What is told with the code of a server that has too much to do, and would be
# told again: of a message that is too large (gRPC), and of a request that
# waited in a queue for as long as it may.
_WILL_NOT_PASS = ("larger than max", "timeout exceeded while waiting")
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 8.0


def waiting_time(attempt: int) -> float:
    """Seconds to wait after an attempt, 1 the first: later and later.

    Of several clients that were refused together not all come back at once.

    Example:
        >>> 0.05 <= waiting_time(1) <= 0.1 and 4 <= waiting_time(100) <= 8
        True
    """
    longest = min(_FIRST_WAIT * 2 ** min(attempt - 1, 10), _LONGEST_WAIT)
    return longest * random.uniform(0.5, 1)


async def in_time(answer: Awaitable[Answer], seconds: float) -> Answer:
    """What is awaited, or the error that it did not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise TranslationServerError(
            f"no answer within {seconds:.3g} s", "DEADLINE_EXCEEDED"
        ) from None


async def repeated(
    request: Callable[[float], Awaitable[Answer]],
    what: str,
    attempts: int,
    deadline: float,
    request_timeout: float | None = None,
) -> Answer:
    """What `request(seconds)` answers.

    Args:
        request: asks once, for at most so many seconds.
        what: is asked for, for the error.
        attempts: how often it is asked at most.
        deadline: of them all, by `time.monotonic()`.
        request_timeout: seconds of each at most.

    Raises:
        TranslationServerError: that of the last attempt, explained.
    """
    for attempt in itertools.count(1):
        left = deadline - time.monotonic()
        seconds = min(left, request_timeout or left)
        try:
            if left <= 0:
                raise TranslationServerError(
                    "no time is left", "DEADLINE_EXCEEDED"
                )
            return await in_time(request(seconds), seconds)
        except TranslationServerError as error:
            wait = waiting_time(attempt)
            if error.retry_after is not None:
                # Not all come back when the time is over.
                wait += error.retry_after
            again = attempt < attempts and _may_pass(error)
            if not again or time.monotonic() + wait >= deadline:
                raise error.explained(what, attempt) from None
        await asyncio.sleep(wait)
    raise AssertionError("it either answers or raises")


def _may_pass(error: TranslationServerError) -> bool:
    told = str(error)
    if error.code in _MAY_PASS:
        return not any(text in told for text in _WILL_NOT_PASS)
    return any(text in told for text in OF_ANOTHER_REQUEST)
