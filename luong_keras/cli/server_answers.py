"""Prints what a server answers, a part of the lines after the other."""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from luong_keras.evaluation.plots import plot_alignment
from luong_keras.inference.search_options import SEARCH_OPTIONS
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.missing_package import missing_package

try:
    from luong_keras_client import (
        ScoredTranslation,
        TextTooLongError,
        Translation,
        TranslationClient,
        TruncationWarning,
    )
    from luong_keras_client.errors import TruncatedPlaces
except ImportError as error:
    raise missing_package("luong-keras-client", error, "client") from error

if TYPE_CHECKING:
    from luong_keras.cli.ask import Ask

Pairs = Iterator[tuple[str, str]]


def print_answers(
    client: TranslationClient, pairs: Pairs, arguments: Ask
) -> None:
    """Prints a line for each sentence, in order."""
    if arguments.score is None and not _as_json(arguments):
        sources = (source for source, _ in pairs)
        answers = client.translate_lines(sources, **_search(arguments))
    else:
        size = arguments.batch_size * arguments.concurrency
        parts = iter(lambda: list(itertools.islice(pairs, size)), [])
        answers = _answers_in_parts(client, parts, arguments)
    with counted_lines() as count:
        for answer in answers:
            # Whoever reads them has each as soon as it is there.
            print(answer, flush=True)
            count()


def draw_first(
    client: TranslationClient, pairs: Pairs, arguments: Ask
) -> Pairs:
    """Draws the attention of the first pair; gives all of them back."""
    first = next(pairs, None)
    if first is None:
        return pairs
    drawn: Translation | ScoredTranslation
    if arguments.score is not None:
        (drawn,) = client.align_pairs(first[:1], first[1:])
    else:
        (drawn,) = client.align(first[:1], **_search(arguments))
    if drawn.tokens and drawn.source_tokens:
        assert arguments.plot is not None
        plot_alignment(
            drawn.source_tokens,
            drawn.tokens,
            drawn.alignments,
            arguments.plot,
        )
    return itertools.chain([first], pairs)


@contextmanager
def counted_lines(console: Any = None) -> Iterator[Callable[[], None]]:
    """Shows how many lines are done, where that disturbs nothing.

    That is at a terminal, unless it shows the lines themselves.

    Args:
        console: where to show it, instead.
    """
    shown = sys.stderr.isatty() and not sys.stdout.isatty()
    if console is None and not shown:
        yield lambda: None
        return
    # It comes with Keras.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    columns = SpinnerColumn(), "{task.completed} lines", TimeElapsedColumn()
    console = console or Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda: progress.advance(task)


def _answers_in_parts(
    client: TranslationClient,
    parts: Iterator[list[tuple[str, str]]],
    arguments: Ask,
) -> Iterator[str]:
    """The answers; errors and warnings have the places in all the lines."""
    first, places = 0, TruncatedPlaces()
    for part in parts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TruncationWarning)
                found = _answers(client, part, arguments)
        except TextTooLongError as error:
            raise TextTooLongError(
                [first + place for place in error.places],
                error.size,
                error.limit,
            ) from None
        for place, (answer, truncated) in enumerate(found, first):
            places.add(place, truncated)
            yield answer
        first += len(part)
    places.warn(stacklevel=1)


def _answers(
    client: TranslationClient, part: list[tuple[str, str]], arguments: Ask
) -> list[tuple[str, bool]]:
    """What to print for each pair, and whether it was cut."""
    sources = [source for source, _ in part]
    if arguments.score is not None:
        scored = client.score(sources, [target for _, target in part])
        return [(f"{one.log_probability:.6f}", one.truncated) for one in scored]
    options = _search(arguments)
    found: list[list[Any]]
    if arguments.alignments:
        ranks = range(min(arguments.n_best, client.contract().n_best))
        aligned = [client.align(sources, x, **options) for x in ranks]
        found = [
            [one for one in nbest if one.score > ABSENT_SCORE]
            for nbest in zip(*aligned, strict=True)
        ]
    else:
        found = list(client.nbest(sources, n_best=arguments.n_best, **options))
    links = {"links": True} if arguments.alignments else {}
    return [
        (
            json.dumps(
                [one.as_dict(**links) for one in nbest], ensure_ascii=False
            ),
            any(one.truncated for one in nbest),
        )
        for nbest in found
    ]


def _as_json(arguments: Ask) -> bool:
    return arguments.n_best != 1 or arguments.alignments


def _search(arguments: Ask) -> Any:
    options = {
        name: getattr(arguments, name)
        for name in SEARCH_OPTIONS
        if name not in ("n_best", "replace_unknown")
    }
    return {name: x for name, x in options.items() if x is not None}
