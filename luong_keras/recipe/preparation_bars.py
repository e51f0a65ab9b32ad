"""How far the preparation of a text is, while it runs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import rich.console
import rich.progress

Item = TypeVar("Item")
_TOLD_AFTER = 10  # seconds, where no bar is seen
_ITEMS_PER_CALL = 1024


@contextlib.contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere one line at the end of what took long.

    Args:
        what: What is done, such as `checking pairs`.
        total: How many there are, if that is known.

    Yields:
        What to call with how many more are done.

    Example:
        >>> with bar("checking pairs", 7) as progress:
        ...     progress(7)
    """
    console = rich.console.Console(file=sys.stdout)
    done, started = 0, time.monotonic()
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TextColumn("{task.completed:,.0f}"),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as shown:
        task = shown.add_task(what, total=total)

        def progress(more: int) -> None:
            nonlocal done
            done += more
            shown.advance(task, more)

        yield progress
    seconds = time.monotonic() - started
    if seconds > _TOLD_AFTER:
        print(f"{what}: {done:,} in {seconds:.0f} s")


def counted(
    items: Iterable[Item], progress: Callable[[int], None]
) -> Iterator[Item]:
    """Gives the items, and tells now and then how many more they were."""
    number = 0
    for number, item in enumerate(items, start=1):
        yield item
        if number % _ITEMS_PER_CALL == 0:
            progress(_ITEMS_PER_CALL)
    progress(number % _ITEMS_PER_CALL)
