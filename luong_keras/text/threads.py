"""Batches of items, and functions that run on batches in threads.

TensorFlow's operations let other Python threads run at the same time.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

from luong_keras.missing_package import needs

Batch = TypeVar("Batch")
Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_BATCHES = 8  # each has logits of the whole vocabulary


def map_in_threads(
    function: Callable[[Batch], Result],
    batches: Iterable[Batch],
    threads: int | None,
) -> Iterator[Result]:
    """Apply a function to batches in threads, and yield results in order.

    Args:
        function: A function that threads may call at the same time.
        batches: The batches; a few are submitted ahead of the results.
        threads: The number of threads; one per core when None.

    Yields:
        The results.

    Example:
        >>> list(map_in_threads(len, ["a", "bc", ""], threads=2))
        [1, 2, 0]
    """
    threads = available_cores() if threads is None else threads
    if threads == 1:
        yield from map(function, batches)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield from map_in_order(pool, function, batches, 2 * threads)
    finally:
        pool.shutdown(cancel_futures=True)


def map_in_order(
    pool: Executor,
    function: Callable[[Batch], Result],
    batches: Iterable[Batch],
    ahead: int,
) -> Iterator[Result]:
    """Apply a function to batches in a pool, and yield results in order.

    Args:
        pool: Threads or processes.
        function: The function.
        batches: The arguments of the function.
        ahead: The number of batches that are submitted to the pool beyond the
            batch whose result is awaited.

    Yields:
        The results.
    """
    futures: deque[Future[Result]] = deque()
    for batch in batches:
        futures.append(pool.submit(function, batch))
        if len(futures) > ahead:
            yield futures.popleft().result()
    for future in futures:
        yield future.result()


def batches_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Group items for batched calls.

    Args:
        items: The items.
        size: The number of items per group; the last group may be smaller.

    Yields:
        The groups, none of them empty. An error of the items is raised after
        those before it.

    Example:
        >>> list(batches_of("abc", 2))
        [['a', 'b'], ['c']]
    """
    batch: list[Item] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def divide_cores(computations: int) -> None:
    """Divide the cores equally among concurrent computations.

    TensorFlow then runs an operation on one share of the cores instead of on
    all. Call this before the first computation of TensorFlow. The environment
    variable `TF_NUM_INTRAOP_THREADS` has precedence.

    Args:
        computations: The number of concurrent computations.
    """
    share = max(1, available_cores() // computations)
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(share))


def available_cores() -> int:
    """Return the number of cores that this process may use.

    It respects affinity, the limits of a container and LOKY_MAX_CPU_COUNT.
    """
    with needs("loky"):
        import loky
    return loky.cpu_count()


def batches_at_once() -> int:
    """Return the number of batches that run at the same time.

    Much of a search is sequential, which leaves cores free for other batches.
    """
    return min(available_cores(), _MAX_BATCHES)


def share_cores() -> None:
    """Divide the cores among the batches that run at the same time.

    This is for programs that only translate: TensorFlow then runs an operation
    on one share of the cores instead of on all. Call this before the first
    computation of TensorFlow. The environment variable
    `TF_NUM_INTRAOP_THREADS` has precedence.

    Example:
        >>> import os
        >>> before = dict(os.environ)
        >>> share_cores()
        >>> int(os.environ["TF_NUM_INTRAOP_THREADS"]) >= 1
        True
        >>> os.environ.clear(); os.environ.update(before)
    """
    divide_cores(batches_at_once())
