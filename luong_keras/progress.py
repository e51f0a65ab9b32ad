"""Progress bars of long steps, with short numbers and times.

Bars are drawn on the standard error, because a command's result goes to its
standard output. On a terminal a bar is one line that is redrawn, and removed
when the step ends; a notebook has such a line in each cell. In a file, or on a
terminal without a cursor, a step writes one line per minute, so a quick step
writes none.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

Item = TypeVar("Item")
#: A function that takes the number of further items done.
Advance = Callable[[int], None]
SECONDS_A_LINE = 60.0  # in a file
_SECONDS_A_DRAWING = 0.25  # on a terminal or in a notebook
_NARROWEST = 40  # columns that a bar needs
# Only one line is redrawn at a time: a step inside another one has no bar.
_line_lock = threading.Lock()
# The redirection of standard output, which calls of `no_output` share.
_quiet = contextlib.ExitStack()
_quiet_calls = 0
_quiet_lock = threading.Lock()


@contextlib.contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Advance]:
    """Show the progress of a step while it lasts.

    A bar inside another one is not shown. The yielded function may be called
    for every line of a corpus: most calls only add a number.

    Args:
        what: The step, in a few words: `"reading the text"`.
        total: The number of items to do; unknown when None.

    Yields:
        A function that takes the number of further items done.

    Example:
        >>> with progress_bar("counting words", total=3) as advance:
        ...     for _ in range(3):
        ...         advance(1)
    """
    done = 0

    def line() -> str:
        of = "" if total is None else f" of {total:,}"
        return f"{what}: {done:,}{of}"

    def advance(count: int) -> None:
        nonlocal done
        done += count
        step()

    drawing = functools.partial(_bar_drawing, what, total, lambda: done)
    with show_line(line, SECONDS_A_LINE, sys.stderr, drawing=drawing) as step:
        yield advance


@contextlib.contextmanager
def no_output() -> Iterator[None]:
    """Discard standard output and show no bars, as Keras does with verbose=0.

    Python's standard output belongs to the process: calls in several threads
    discard it until the last one ends.

    Example:
        >>> with no_output():
        ...     print("training")
    """
    global _quiet_calls
    with _quiet_lock:
        if not _quiet_calls:
            null = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            _quiet.enter_context(null)
            _quiet.enter_context(contextlib.redirect_stdout(null))
            if _line_lock.acquire(blocking=False):
                _quiet.callback(_line_lock.release)
        _quiet_calls += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_calls -= 1
            if not _quiet_calls:
                _quiet.close()


def output_bar(
    what: str, total: int | None = None
) -> contextlib.AbstractContextManager[Advance]:
    """Show a bar for a step that prints its results, unless on a terminal.

    On a terminal the results show the progress.

    Args:
        what: The step, in a few words.
        total: The number of items to do; unknown when None.

    Returns:
        A context with the function of `progress_bar`.

    Example:
        >>> with output_bar("translating", total=2) as advance:
        ...     advance(2)
    """
    if sys.stdout.isatty():
        return contextlib.nullcontext(lambda count: None)
    return progress_bar(what, total)


def with_bar(
    items: Iterable[Item], what: str, total: int | None = None
) -> Iterator[Item]:
    """Yield the items, with a bar that shows how many have been taken.

    Args:
        items: The items of a loop.
        what: The step, in a few words.
        total: The number of items; their `len`, if they have one, when None.

    Yields:
        The items.

    Example:
        >>> [2 * n for n in with_bar([1, 2], "doubling")]
        [2, 4]
    """
    total = total or operator.length_hint(items) or None
    with progress_bar(what, total) as advance:
        for item in items:
            yield item
            advance(1)


def terminal(stream: IO[str], narrowest: int = _NARROWEST) -> Console | None:
    """Return the terminal of a stream, if a line can be redrawn on it.

    Args:
        stream: A stream such as `sys.stdout`.
        narrowest: The minimum number of columns.

    Returns:
        The terminal; None for a file, a notebook, a narrow terminal or one
        without a cursor (`TERM=dumb`).

    Example:
        >>> import io
        >>> terminal(io.StringIO())
    """
    from rich.console import Console

    # Rich is not asked: with FORCE_COLOR it takes every file for a terminal.
    if _is_notebook(stream) or not stream.isatty():
        return None
    console = Console(file=stream, force_jupyter=False)
    if not console.is_interactive or console.width < narrowest:
        return None
    return console


@contextlib.contextmanager
def show_line(
    line: Callable[[], str],
    seconds: float,
    stream: IO[str],
    narrowest: int = _NARROWEST,
    drawing: Callable[[Console], Callable[[], RenderableType]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Show a line of text that changes, while the context lasts.

    A timer redraws the line on a terminal; text printed meanwhile appears
    above it. A notebook shows the line below the running cell. While another
    line or bar is shown, this one is not.

    Args:
        line: Function that returns the current text, called from a thread.
        seconds: Least time between two lines of a file.
        stream: A stream such as `sys.stdout`.
        narrowest: The minimum number of columns of a redrawn line.
        drawing: Function from a terminal to the function that returns what is
            redrawn on it; the line by default.

    Yields:
        A function to call whenever the text has changed.

    Example:
        >>> with show_line(lambda: "step 1", 0.0, sys.stdout) as step:
        ...     step()
        step 1
    """

    def text() -> Text:
        from rich.text import Text

        return Text(line(), no_wrap=True, overflow="ellipsis")

    if not _line_lock.acquire(blocking=False):
        yield lambda: None
        return
    with contextlib.ExitStack() as stack:
        stack.callback(_line_lock.release)
        notebook = _notebook_line()
        if notebook is None and (console := terminal(stream, narrowest)):
            stack.enter_context(
                _redraw(console, drawing(console) if drawing else text)
            )
            yield lambda: None
            return
        show = notebook or functools.partial(print, file=stream, flush=True)
        pause = seconds if notebook is None else _SECONDS_A_DRAWING
        due = time.monotonic() + pause

        def step() -> None:
            nonlocal due
            if (now := time.monotonic()) >= due:
                due = now + pause
                show(line())

        if notebook is not None:
            stack.callback(notebook, "")
        yield step


@contextlib.contextmanager
def _redraw(
    console: Console, drawing: Callable[[], RenderableType]
) -> Iterator[None]:
    """Redraw what the function returns; it is called from a thread."""
    from rich.live import Live

    live = Live(
        console=console,
        get_renderable=drawing,
        refresh_per_second=1 / _SECONDS_A_DRAWING,
        transient=True,
        # Text printed meanwhile appears above the drawing; in a file it is
        # unchanged.
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
    )
    with live:
        # Rich hides the cursor, but a killed process cannot restore it.
        console.show_cursor(True)
        live.refresh()
        yield


def _bar_drawing(
    what: str, total: int | None, done: Callable[[], int], console: Console
) -> Callable[[], RenderableType]:
    """Return a function that draws a bar of the items done."""
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    description = Column(
        no_wrap=True, overflow="ellipsis", max_width=console.width - 30
    )
    progress = Progress(
        TextColumn("{task.description}", table_column=description),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
        TimeElapsedColumn() if total is None else TimeRemainingColumn(),
        console=console,
        expand=True,
    )
    task = progress.add_task(what, total=total, count="")
    of = "" if total is None else f" of {format_rounded(total)}"

    def drawing() -> RenderableType:
        count = f"{format_rounded(done())}{of}" if total or done() else ""
        progress.update(task, completed=done(), count=count)
        return progress.get_renderable()

    return drawing


def _is_notebook(stream: IO[str]) -> bool:
    return type(stream).__module__.startswith("ipykernel")


def _notebook_line() -> Callable[[str], object] | None:
    """Return the function that writes the progress line of the running cell.

    Returns:
        A function that takes the text, "" for none; None outside a notebook.

    Example:
        >>> _notebook_line()
    """
    if not _is_notebook(sys.stdout):
        return None
    from IPython import get_ipython

    handle = _line_of_cell(get_ipython().execution_count)
    return lambda text: handle.update({"text/plain": text}, raw=True)


@functools.lru_cache(maxsize=1)
def _line_of_cell(number: int) -> Any:
    """Show an empty line below the running cell, once per cell."""
    from IPython.display import display

    return display({"text/plain": ""}, raw=True, display_id=True)


def format_rounded(count: float) -> str:
    """Return a large number in three digits.

    Example:
        >>> [format_rounded(count) for count in (7, 999, 12_345, 4_500_000)]
        ['7', '999', '12.3k', '4.5M']
    """
    for unit in ("", "k", "M"):
        if count < 999.5:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g}G"


def clock(seconds: float) -> str:
    """Return a duration in at most six characters.

    Example:
        >>> [clock(seconds) for seconds in (7, 75, 3 * 3600 + 61, 1e5, 1e6)]
        ['0:07', '1:15', '3h01m', '27h46m', '11d13h']
    """
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{left:02d}"
    hours, minutes = divmod(minutes, 60)
    if hours < 100:
        return f"{hours}h{minutes:02d}m"
    return f"{hours // 24}d{hours % 24:02d}h"
