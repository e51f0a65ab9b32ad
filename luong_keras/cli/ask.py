"""`luong-keras ask`: translation of text through a server."""

import contextlib
import functools
import itertools
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tyro.conf import (
    FlagCreatePairsOff,
    Positional,
    UseAppendAction,
)

from luong_keras.cli.parsing import Option, given_flags, parse_arguments
from luong_keras.config import AlignmentStep
from luong_keras.config.checks import check_at_least
from luong_keras.files.text_lines import read_input_parts
from luong_keras.inference.search_options import BEAM_OPTIONS, SEARCH_OPTIONS
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.missing_package import needs
from luong_keras.progress import output_bar

with needs("luong-keras-client", "client"):
    from luong_keras_client import (
        TextTooLongError,
        TranslationClient,
        TranslationServerError,
        TruncationWarning,
    )
    from luong_keras_client.address import without_user
    from luong_keras_client.errors import TruncatedPlaces

PROGRAM = "luong-keras ask"
# Flags that are options of `TranslationClient.translate`.
_OPTIONS = [
    name for name in SEARCH_OPTIONS if name not in ("n_best", "replace_unknown")
]
# Flags that are arguments of `TranslationClient`.
_CLIENT_ARGUMENTS = [
    "url", "model", "version", "label", "timeout", "request_timeout",
    "batch_size", "concurrency", "alignment_step", "ca_certificate",
    "client_certificate", "client_key",
]  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """Translate text through a server, as it arrives, to standard output.

    With `--n-best` or `--alignments` the output is JSON lines instead of text.
    A token for the server is read from the environment variable
    LUONG_KERAS_TOKEN, because the command line would show it to everybody on
    this machine.
    """

    # sentences, one per argument; default: the lines of standard input
    sentences: Option[Positional[tuple[str, ...]]] = ()
    # http://HOST:PORT, https://…, grpc://HOST:PORT or grpcs://…
    url: str = "http://localhost:8501"
    # name of the model on the server
    model: str = "translator"
    # the number of a version; default: the newest
    version: Option[int | None] = None
    # the label of a version, instead of the number
    label: Option[str | None] = None
    # hypotheses of the beam; default: as exported
    beam_size: Option[int | None] = None
    # 0: sum of log-probabilities, 1: their mean; default: as exported
    length_penalty: Option[float | None] = None
    # text that all translations must begin with
    prefix: Option[str | None] = None
    # penalty for source words that get no attention, such as 0.2
    coverage_penalty: Option[float | None] = None
    # no translation repeats a sequence of this many words; 0: no such limit
    no_repeat_ngram: Option[int | None] = None
    # above 0: draw --n-best samples at random, at this temperature
    temperature: Option[float | None] = None
    # samples: draw from this many most probable words
    top_k: Option[int | None] = None
    # samples: draw from the fewest words that together have this probability
    top_p: Option[float | None] = None
    # seed of samples
    seed: Option[int | None] = None
    # phrases that all translations must have, separated by tabs
    required: Option[str | None] = None
    # phrases that no translation may have, likewise
    forbidden: Option[str | None] = None
    # translations per sentence
    n_best: int = 1
    # also print the links [source position, target position] of each word
    alignments: FlagCreatePairsOff[bool] = False
    # decoder step whose weights make the links of a word, as
    # decoding.alignment_step of the run
    alignment_step: AlignmentStep = "produces"
    # seconds for a request, including retries
    timeout: float = 30.0
    # seconds for one attempt, which is not retried if it takes longer; default:
    # no limit
    request_timeout: Option[float | None] = None
    # sentences per request
    batch_size: int = 32
    # requests at the same time; with 1, and --batch-size 1, each line is
    # answered before the next is read, as on a terminal
    concurrency: int = 4
    # NAME:VALUE, a header of each request; may be repeated
    header: Option[UseAppendAction[tuple[str, ...]]] = ()
    # certificates of authorities that may have signed the server's certificate
    ca_certificate: Option[Path | None] = None
    # certificate of the client
    client_certificate: Option[Path | None] = None
    # key of the client, if it is in another file than the certificate
    client_key: Option[Path | None] = None


def parse(argv: Sequence[str]) -> Ask:
    """Parse the command line, with errors that hide passwords."""
    try:
        return parse_arguments(Ask, PROGRAM, argv)
    except ValueError as error:
        message = re.sub(r"(?i)\b(bearer|basic)\s+\S+", r"\1 …", str(error))
        if message.startswith("--version:"):
            message += " Write --label for the label of a version."
        raise ValueError(without_user(message)) from None


def run(arguments: Ask) -> int:
    """Print the answers."""
    if not arguments.sentences and sys.stdin.isatty():
        # Answer each line before reading the next.
        arguments = replace(arguments, batch_size=1, concurrency=1)
    check_at_least(1, **{"--n-best": arguments.n_best})
    _check_options(arguments)
    try:
        _ask_server(arguments)
    except TextTooLongError as error:
        place = error.places[0]  # from 0; the numbers of lines are from 1
        message = str(error).replace(
            f"at place {place}", f"at number {place + 1}"
        )
        raise OSError(message) from error
    except TranslationServerError as error:
        raise OSError(str(error)) from error
    return 0


def _check_options(arguments: Ask) -> None:
    """Check that no option is given that would be ignored."""
    if not arguments.alignments:
        return
    ignored = [name for name in _OPTIONS if name not in BEAM_OPTIONS]
    flags = given_flags(arguments, ignored)
    if flags:
        raise ValueError(
            "Expected with --alignments: a beam search with no option but "
            "--beam-size, --length-penalty and --prefix. Received: "
            f"{', '.join(flags)}."
        )


def _ask_server(arguments: Ask) -> None:
    standard_input = itertools.chain.from_iterable(read_input_parts(1))
    lines = iter(arguments.sentences or standard_input)
    with (
        _one_line_warnings(),
        TranslationClient(
            headers=_parse_headers(arguments.header),
            **{name: getattr(arguments, name) for name in _CLIENT_ARGUMENTS},
        ) as client,
    ):
        _print_answers(client, lines, arguments)


def _parse_headers(texts: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for text in texts:
        name, colon, value = map(str.strip, text.partition(":"))
        if not colon:
            raise ValueError(
                "Expected: --header NAME:VALUE. Received: one without a "
                "colon, which is not shown."
            )
        if headers.setdefault(name.lower(), value) != value:
            raise ValueError(
                f"Expected: each --header once. Received: {name} with two "
                "values. Leave one out."
            )
    return headers


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print truncation warnings in one line, with lines numbered from 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", TruncationWarning)
        warnings.showwarning = _show_warning
        yield


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    places = getattr(message, "places", None)  # not of an older client
    if isinstance(message, TruncationWarning) and places is not None:
        message = places.message(1)
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)


def _print_answers(
    client: TranslationClient, lines: Iterator[str], arguments: Ask
) -> None:
    """Print a line per sentence, in order, also of those before an error."""
    errors: list[Exception] = []
    if arguments.n_best == 1 and not arguments.alignments:
        answers = client.translate_lines(lines, **_search_options(arguments))
    else:
        size = arguments.batch_size * arguments.concurrency
        read = _until_error(lines, errors)
        parts = iter(lambda: list(itertools.islice(read, size)), [])
        answers = _answer_parts(client, parts, arguments)
    with output_bar("asking") as advance:
        for answer in answers:
            print(answer, flush=True)  # Readers get each line at once.
            advance(1)
    if errors:
        raise errors[0]


def _until_error(
    lines: Iterator[str], errors: list[Exception]
) -> Iterator[str]:
    """Yield the lines until an error, which is appended to `errors`."""
    try:
        yield from lines
    except (OSError, ValueError) as error:
        errors.append(error)


def _answer_parts(
    client: TranslationClient,
    parts: Iterator[list[str]],
    arguments: Ask,
) -> Iterator[str]:
    """Yield the answers; errors and warnings count places over all lines."""
    first, places = 0, TruncatedPlaces()
    for part in parts:
        failures: list[TranslationServerError] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            answers = _answer_part(client, part, arguments, failures)
        for place, (answer, truncated) in enumerate(answers, first):
            places.add(place, truncated)
            yield answer
        if failures:
            places.warn(stacklevel=1)  # of answers that were printed
            error = failures[-1]
            if isinstance(error, TextTooLongError):
                long = [first + place for place in error.places]
                error = TextTooLongError(long, error.size, error.limit)
            raise error
        first += len(part)
    places.warn(stacklevel=1)


def _answer_part(
    client: TranslationClient,
    sources: list[str],
    arguments: Ask,
    failures: list[TranslationServerError],
) -> list[tuple[str, bool]]:
    """Return the line to print per sentence, and whether it was cut.

    There is none from the first failed pair on, whose error is the last one of
    `failures`.
    """
    results_of = functools.partial(_results_until_failure, failures)
    options = _search_options(arguments)
    nbest_lists: list[list[Any]]
    if arguments.alignments:
        if arguments.n_best > (most := client.contract().n_best):
            raise ValueError(
                f"Expected: --n-best of at most {most}, as exported. Received: "
                f"{arguments.n_best}."
            )
        aligned: list[list[Any]] = []
        for rank in range(arguments.n_best):
            aligned.append(results_of(client.align, sources, rank, **options))
            sources = sources[: len(aligned[-1])]
        nbest_lists = [
            [result for result in nbest if result.score > ABSENT_SCORE]
            for nbest in zip(*aligned, strict=False)
        ]
    else:
        options["n_best"] = arguments.n_best
        nbest_lists = results_of(client.nbest, sources, **options)
    links = {"links": True} if arguments.alignments else {}
    return [
        (
            json.dumps(
                [one.as_dict(**links) for one in nbest], ensure_ascii=False
            ),
            not nbest or any(translation.truncated for translation in nbest),
        )
        for nbest in nbest_lists
    ]


def _results_until_failure(failures, method, *texts, **options) -> list[Any]:
    """Return the results of a method of the client before its first failure."""
    try:
        return method(*texts, **options)
    except TranslationServerError as error:
        failures.append(error)
        results = error.results or []
        return [*itertools.takewhile(lambda one: one is not None, results)]


def _search_options(arguments: Ask) -> Any:
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    return {name: value for name, value in options.items() if value is not None}
