"""Batches of items, and functions that run on batches in threads.

TensorFlow's operations let other threads of Python run meanwhile.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

Batch = TypeVar("Batch")
Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_BATCHES = 8  # each has logits of the whole vocabulary


def in_threads(
    function: Callable[[Batch], Result],
    batches: Iterable[Batch],
    threads: int | None,
) -> Iterator[Result]:
    """Applies a function to batches; gives the results in their order.

    Args:
        function: What threads may call at the same time.
        batches: The batches; a few are ahead of the results.
        threads: How many threads; one a core when None.

    Yields:
        The results.

    Example:
        >>> list(in_threads(len, ["a", "bc", ""], threads=2))
        [1, 2, 0]
    """
    threads = available_cores() if threads is None else threads
    if threads == 1:
        yield from map(function, batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from in_order(pool, function, batches, 2 * threads)


def in_order(
    pool: Executor,
    function: Callable[[Batch], Result],
    batches: Iterable[Batch],
    ahead: int,
) -> Iterator[Result]:
    """Has a pool apply a function, and gives the results in their order.

    Args:
        pool: Threads or processes.
        function: The function.
        batches: What it is applied to.
        ahead: How many of them the pool is given beyond the one waited for.

    Yields:
        The results.
    """
    waiting: deque[Future[Result]] = deque()
    for batch in batches:
        waiting.append(pool.submit(function, batch))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    for future in waiting:
        yield future.result()


def batches_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Groups items for calls of many at a time.

    Args:
        items: The items.
        size: How many a group has; the last one may have fewer.

    Yields:
        The groups, none of them empty.

    Example:
        >>> list(batches_of("abc", 2))
        [['a', 'b'], ['c']]
    """
    items = iter(items)
    while batch := list(itertools.islice(items, size)):
        yield batch


def divide_cores(computations: int) -> None:
    """Gives that many computations at once an equal share of the cores each.

    TensorFlow then divides an operation among that share, and no longer among
    all cores. It works before TensorFlow computes for the first time;
    `TF_NUM_INTRAOP_THREADS` of the environment has precedence.

    Args:
        computations: How many.
    """
    share = max(1, available_cores() // computations)
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(share))


def available_cores() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Not on this system.
        return os.cpu_count() or 1


def batches_at_once() -> int:
    """The number of batches that run at the same time.

    A search does much one after the other, which leaves cores to the batches
    beside it.
    """
    return min(available_cores(), _MAX_BATCHES)


def share_cores() -> None:
    """Gives each batch its own share of the cores, to translate many.

    For programs that do nothing else: TensorFlow then divides an operation
    among that share of the cores, and no longer among all. It works before
    TensorFlow computes for the first time; `TF_NUM_INTRAOP_THREADS` of the
    environment has precedence.

    Example:
        >>> import os
        >>> before = dict(os.environ)
        >>> share_cores()
        >>> int(os.environ["TF_NUM_INTRAOP_THREADS"]) >= 1
        True
        >>> os.environ.clear(); os.environ.update(before)
    """
    divide_cores(batches_at_once())
