"""Asks a server again, where that may help and time is left."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from luong_keras.client.server_error import TranslationServerError

Answer = TypeVar("Answer")
# The server is away or has too much to do: no request changes anything, so
# it may be sent again. One whose time ran out is not: a server that is too
# slow would only have more to do.
_MAY_PASS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
# TensorFlow Serving's batching_session.cc and batching_util.cc give the error
# of one request to all that share its batch. Ours have the right shapes.
_OF_ANOTHER_REQUEST = (
    "from different tasks have different shapes",
    "One or more tasks does not conform to batch signature",
    "Tensor concat operation failed",
    "Got empty tensor in batch of non-empty tensors",
    "Only tensors with rank from 1 to 6 can be padded",
)
# Says gRPC of a message, with the code of a server that has too much to do.
_TOO_LARGE = "larger than max"
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
    shared_a_batch = False
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
            if error.code in _MAY_PASS and _TOO_LARGE not in str(error):
                again = attempt < attempts
                if error.retry_after is not None:
                    wait = error.retry_after
            else:
                again = not shared_a_batch and _is_of_another_request(error)
                shared_a_batch = again
            if not again or time.monotonic() + wait >= deadline:
                raise error.explained(what, attempt) from None
        await asyncio.sleep(wait)
    raise AssertionError("it either answers or raises")


def _is_of_another_request(error: TranslationServerError) -> bool:
    return any(text in str(error) for text in _OF_ANOTHER_REQUEST)
