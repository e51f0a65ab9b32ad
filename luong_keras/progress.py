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
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task

Item = TypeVar("Item")
#: A function that takes the number of further items done.
Advance = Callable[[int], None]
SECONDS_A_LINE = 60.0  # in a file
_SECONDS_A_DRAWING = 0.1
_NARROWEST = 40  # columns that a bar needs
# Only one line is redrawn at a time: a step inside another one has no bar.
_drawing = threading.Lock()


@contextlib.contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Advance]:
    """Show the progress of a step while it lasts.

    A bar inside another one is not shown. The yielded function may be called
    for every line of a corpus: most calls only add a number.

    Args:
        what: the step, in a few words: `"reading the text"`.
        total: the number of items to do; unknown when None.

    Yields:
        A function that takes the number of further items done.

    Example:
        >>> with progress_bar("counting words", total=3) as advance:
        ...     for _ in range(3):
        ...         advance(1)
    """
    with contextlib.ExitStack() as stack:
        if not stack.enter_context(_one_at_a_time()):
            yield lambda count: None
            return
        if (show := notebook_line()) is not None:
            stack.callback(show, "")
            yield _lines(what, total, _SECONDS_A_DRAWING, show)
            return
        console = terminal(sys.stderr)
        if console is None:
            show = functools.partial(print, file=sys.stderr, flush=True)
            yield _lines(what, total, SECONDS_A_LINE, show)
            return
        progress = stack.enter_context(_progress(console))
        _keep_cursor(console)
        task = progress.add_task(what, total=total)
        waiting, drawn = 0, time.monotonic()

        def advance(count: int) -> None:
            nonlocal waiting, drawn
            waiting += count
            now = time.monotonic()
            if now - drawn >= _SECONDS_A_DRAWING:
                progress.update(task, advance=waiting)
                waiting, drawn = 0, now

        yield advance


def with_bar(
    items: Iterable[Item], what: str, total: int | None = None
) -> Iterator[Item]:
    """Yield the items, with a bar that shows how many have been taken.

    Args:
        items: the items of a loop.
        what: the step, in a few words.
        total: the number of items; their `len`, if they have one, when None.

    Yields:
        The items.

    Example:
        >>> [2 * n for n in with_bar([1, 2], "doubling")]
        [2, 4]
    """
    if total is None:
        with contextlib.suppress(TypeError):
            total = len(items)  # type: ignore[arg-type]
    with progress_bar(what, total) as advance:
        for item in items:
            yield item
            advance(1)


@contextlib.contextmanager
def bar_of_lines(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar for a step that reports its work line by line.

    Args:
        what: the step, in a few words.
        total: the number of lines.

    Yields:
        A function that prints a line.

    Example:
        >>> with bar_of_lines("checking", total=2) as say:
        ...     say("checked: operations")
        checked: operations
    """
    with progress_bar(what, total) as advance:

        def say(line: str) -> None:
            print(line)
            advance(1)

        yield say


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[bool]:
    """Reserve the redrawn line; yield whether it was free."""
    free = _drawing.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            _drawing.release()


def terminal(stream: IO[str], narrowest: int = _NARROWEST) -> Console | None:
    """Return the terminal of a stream, if a line can be redrawn on it.

    Args:
        stream: a stream such as `sys.stdout`.
        narrowest: the least number of columns.

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
def live_line(console: Console, line: Callable[[], str]) -> Iterator[None]:
    """Draw a line four times a second while the context lasts.

    Text printed meanwhile appears above the line. Nothing is drawn if a bar
    is shown already.

    Args:
        console: the result of `terminal`.
        line: function that returns the current text, called from a thread.
    """
    from rich.live import Live
    from rich.text import Text

    def text() -> Text:
        return Text(line(), no_wrap=True, overflow="ellipsis")

    with _one_at_a_time() as free:
        if not free:
            yield
            return
        live = Live(
            console=console,
            get_renderable=text,
            refresh_per_second=4,
            transient=True,
            redirect_stderr=sys.stderr.isatty(),
        )
        with live:
            _keep_cursor(console)
            yield


def _keep_cursor(console: Console) -> None:
    """Show the cursor that Rich hides: a killed process cannot restore it."""
    console.show_cursor(True)


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Done(ProgressColumn):
        """Column with the finished part and the remaining time."""

        def render(self, task: Task) -> Text:
            parts = []
            if task.total is not None:
                of = f" of {rounded(task.total)}"
                parts.append(rounded(task.completed) + of)
            elif task.completed:
                parts.append(rounded(task.completed))
            if task.time_remaining is not None:
                parts.append(f"{clock(task.time_remaining)} left")
            elif task.elapsed is not None:
                parts.append(clock(task.elapsed))
            return Text(", ".join(parts))

    what = Column(
        no_wrap=True, overflow="ellipsis", max_width=console.width - 30
    )
    return Progress(
        TextColumn("{task.description}", table_column=what),
        BarColumn(bar_width=None),
        Done(table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
        transient=True,
        refresh_per_second=4,
        # Text printed meanwhile appears above the bar; in a file it is
        # unchanged.
        redirect_stdout=sys.stdout.isatty(),
    )


def _lines(
    what: str, total: int | None, seconds: float, show: Callable[[str], object]
) -> Advance:
    """Return a function to show progress as text, at most every `seconds`."""
    done, due = 0, time.monotonic() + seconds

    def advance(count: int) -> None:
        nonlocal done, due
        done += count
        if time.monotonic() < due:
            return
        due = time.monotonic() + seconds
        of = "" if total is None else f" of {total:,}"
        show(f"{what}: {done:,}{of}")

    return advance


def _is_notebook(stream: IO[str]) -> bool:
    return type(stream).__module__.startswith("ipykernel")


# Number of the running cell -> its line.
_cell_lines: dict[int, Any] = {}


def notebook_line() -> Callable[[str], object] | None:
    """Return the function that writes the progress line of the running cell.

    Returns:
        A function that takes the text, "" for none; None outside a notebook.

    Example:
        >>> notebook_line()
    """
    if not _is_notebook(sys.stdout):
        return None
    from IPython import get_ipython
    from IPython.display import display

    cell = get_ipython().execution_count
    if cell not in _cell_lines:
        _cell_lines.clear()
        _cell_lines[cell] = display(
            {"text/plain": ""}, raw=True, display_id=True
        )
    handle = _cell_lines[cell]
    return lambda text: handle.update({"text/plain": text}, raw=True)


def rounded(count: float) -> str:
    """Return a large number in three digits.

    Example:
        >>> [rounded(count) for count in (7, 999, 1234, 12_345, 4_500_000)]
        ['7', '999', '1.23k', '12.3k', '4.5M']
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
