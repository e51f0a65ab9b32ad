"""An event loop in a thread, for those who have none."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class _BackgroundLoop:
    """One for the whole process: gRPC has trouble with several."""

    def __init__(self) -> None:
        # It may be asked for by a finalizer, in the middle of `running`.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop, which is started where it is not running yet."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever,
                    name="luong_keras client",
                    daemon=True,
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """Ends the thread, before Python takes away what it needs."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=1)


_background = _BackgroundLoop()
# Never ended: what they hold belongs to the parents.
_of_parents: list[_BackgroundLoop] = []


def _after_fork() -> None:
    """The thread is not in the child."""
    global _background
    _of_parents.append(_background)
    _background = _BackgroundLoop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _background.stop())


def start(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Starts a coroutine; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, _background.running())


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine returns; it is cancelled where the wait is ended.

    Example:
        >>> run(asyncio.sleep(0, result="done"))
        'done'
    """
    future = start(work)
    try:
        return future.result()
    except BaseException:  # Such as Ctrl-C.
        future.cancel()
        raise
