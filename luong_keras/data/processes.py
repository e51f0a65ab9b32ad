"""The same function of one chunk after the other, on several processes."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from luong_keras.missing_package import missing_package
from luong_keras.text.threads import available_cores

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    processes: int | None,
    alone: int = 0,
) -> Iterator[tuple[Chunk, Result]]:
    """Applies a function to chunks, in their order.

    The results are those of one process, whatever the number. At most two
    chunks a process are on their way, so memory does not grow with their
    number.

    Args:
        function: What can be sent to another process, with its results.
        chunks: The chunks.
        processes: How many processes; all cores where None.
        alone: So many chunks are done here first: for few of them, no process
            is started.

    Yields:
        Each chunk with its result.

    Raises:
        RuntimeError: A process was ended from outside.

    Example:
        >>> list(mapped(len, ["a", "bc"], processes=1))
        [('a', 1), ('bc', 2)]
    """
    chunks = iter(chunks)
    processes = available_cores() if processes is None else processes
    here = itertools.islice(chunks, alone) if processes > 1 else chunks
    for chunk in here:
        yield chunk, function(chunk)
    first = list(itertools.islice(chunks, 1))
    if first:
        rest = itertools.chain(first, chunks)
        yield from _on_processes(function, rest, processes)


def _on_processes(function, chunks, processes):
    try:
        # Unlike the processes of the standard library, these do not run the
        # user's script again, which need not be written for that.
        import loky
    except ImportError as error:
        raise missing_package("loky", error) from error
    # They work on text alone.
    pool = loky.ProcessPoolExecutor(
        max_workers=processes, env={"LUONG_KERAS_LAZY": "1"}
    )
    waiting = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(function, chunk)))
            if len(waiting) >= 2 * processes:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
    except loky.process_executor.BrokenProcessPool as error:
        raise RuntimeError(
            "A process that prepares the text was ended from outside, for "
            f"want of memory, say ({error}). Give the same command again; "
            "with --set data.processes=1 it takes less memory."
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)
