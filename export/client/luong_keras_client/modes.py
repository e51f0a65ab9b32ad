"""Modes of waiting: in threads, or in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
)
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, TypeVar

import tenacity

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def awaitable(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Awaitable[Result]]:
    """Return a method of the blocking client, typed as awaitable."""
    return method  # type: ignore[return-value]


async def iterate(values: Any) -> AsyncIterator[Any]:
    """Iterate over values that are asynchronous or not."""
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


class Waiting:
    """Blocking mode: coroutines that are never suspended, in threads."""

    is_async = False

    class semaphore(threading.Semaphore):
        """Semaphore of threads, for `async with`."""

        async def __aenter__(self) -> None:
            self.acquire()

        async def __aexit__(self, *error: object) -> None:
            self.release()

    @staticmethod
    def result(work: Any) -> Any:
        try:
            work.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("it was suspended")

    @staticmethod
    def iterator(texts: Any) -> Iterator[str]:
        try:
            while (text := Waiting.result(anext(texts, None))) is not None:
                yield text
        finally:
            Waiting.result(texts.aclose())

    @staticmethod
    def start(work: Any) -> Future[Any]:
        """Start work in a daemon thread, for which no exit waits."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(Waiting.result(work))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    @staticmethod
    async def value(value: Any) -> Any:
        return value

    @staticmethod
    async def sleep(seconds: float) -> None:
        tenacity.nap.sleep(seconds)

    @staticmethod
    async def join(work: Future[Any], seconds: float | None = None) -> Any:
        return work.result(seconds)

    @staticmethod
    async def stop(works: list[Any]) -> None:
        """Do nothing: threads end by themselves."""


class Awaited:
    """Asynchronous mode: coroutines of asyncio."""

    is_async = True
    semaphore, sleep = asyncio.Semaphore, staticmethod(asyncio.sleep)
    start = staticmethod(asyncio.create_task)

    @staticmethod
    def result(work: Any) -> Any:
        return work

    @staticmethod
    async def value(value: Any) -> Any:
        return await value

    @staticmethod
    async def join(work: Any, seconds: float | None = None) -> Any:
        # Python 3.11's `wait_for` may lose the cancellation of its caller.
        async with asyncio.timeout(seconds):
            return await work

    @staticmethod
    async def stop(works: list[asyncio.Task[Any]]) -> None:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
