"""`luong-keras ask`: translation of text through a server."""

import itertools
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional

from luong_keras.cli.parsing import Option, parse_arguments
from luong_keras.cli.settings_flags import RequestFlags
from luong_keras.config import AlignmentStep
from luong_keras.config.checks import check_at_least
from luong_keras.files.text_lines import read_input_parts
from luong_keras.inference.search_options import BEAM_OPTIONS
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.missing_package import needs
from luong_keras.text.threads import batches_of

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
# Flags that are arguments of `TranslationClient`.
_CLIENT_ARGUMENTS = [
    "url", "model", "version", "label", "timeout", "batch_size", "concurrency",
    "alignment_step", "ca_certificate", "client_certificate", "client_key",
]  # fmt: skip
_PHRASES = ["prefix", "required", "forbidden"]


@dataclass(frozen=True)
class Ask:
    """Translate text through a server, as it arrives, to standard output.

    With `--n-best` or `--alignments` the output is JSON lines instead of text.
    A `--temperature` above 0 draws samples. A token for the server is read from
    the environment variable LUONG_KERAS_TOKEN, because the command line would
    show it to everybody on this machine.
    """

    # sentences, one per argument; default: the lines of standard input
    sentences: Option[Positional[tuple[str, ...]]] = ()
    # http://HOST:PORT, https://…, grpc://HOST:PORT or grpcs://…
    url: str = "http://localhost:8501"
    # name of the model on the server
    model: str = "translator"
    # the number of a version, of which --label takes a name; default: the
    # newest
    version: Option[int | None] = None
    # the label of a version, instead of the number
    label: Option[str | None] = None
    # settings of the search; default: as exported
    search: OmitArgPrefixes[RequestFlags] = field(default_factory=RequestFlags)
    # text that all translations must begin with
    prefix: Option[str | None] = None
    # phrases that all translations must have, separated by tabs
    required: Option[str | None] = None
    # phrases that no translation may have, likewise
    forbidden: Option[str | None] = None
    # translations per sentence, or samples
    n_best: int = 1
    # also print the links [source position, target position] of each word
    alignments: FlagCreatePairsOff[bool] = False
    # decoder step whose weights make the links of a word, as
    # decoding.alignment_step of the run
    alignment_step: AlignmentStep = "produces"
    # seconds for a request, including retries
    timeout: float = 30.0
    # sentences per request
    batch_size: int = 32
    # requests at the same time; with 1, and --batch-size 1, each line is
    # answered before the next is read, as on a terminal
    concurrency: int = 4
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
    """Print a line per sentence, in order, also of those before an error.

    With JSON lines, those are the sentences of the requests before it.
    """
    check_at_least(1, **{"--n-best": arguments.n_best})
    options = vars(arguments.search) | {
        name: getattr(arguments, name) for name in _PHRASES
    }
    options = {
        name: value for name, value in options.items() if value is not None
    }
    refused = [name for name in options if name not in BEAM_OPTIONS]
    if arguments.alignments and refused:
        beam_flags, flags = map(_flags, (BEAM_OPTIONS, refused))
        raise ValueError(
            "Expected with --alignments: a beam search with no option but "
            f"{beam_flags}. Received: {flags}."
        )
    settings = {name: getattr(arguments, name) for name in _CLIENT_ARGUMENTS}
    if not arguments.sentences and sys.stdin.isatty():
        # Answer each line before reading the next.
        settings |= {"batch_size": 1, "concurrency": 1}
    size = settings["batch_size"] * settings["concurrency"]
    parts: Iterable[Sequence[str]] = read_input_parts(size)
    if arguments.sentences:
        parts = batches_of(arguments.sentences, size)
    with warnings.catch_warnings():
        warnings.simplefilter("always", TruncationWarning)
        warnings.showwarning = _print_warning
        try:
            with TranslationClient(**settings) as client:
                if arguments.n_best == 1 and not arguments.alignments:
                    lines = itertools.chain.from_iterable(parts)
                    answers = client.translate_lines(lines, **options)
                else:
                    _check_ranks(client, arguments)
                    answers = _json_lines(client, parts, arguments, options)
                for answer in answers:
                    print(answer, flush=True)  # Readers get each line at once.
        except TranslationServerError as error:
            # The client counts lines from 0.
            place = getattr(error, "places", [0])[0]
            message = str(error).replace(
                f"at place {place}", f"at number {place + 1}"
            )
            raise OSError(message) from error
    return 0


def _flags(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _check_ranks(client: TranslationClient, arguments: Ask) -> None:
    """Refuse more ranks than exported before any of them is asked for."""
    most = client.contract().n_best
    if arguments.alignments and arguments.n_best > most:
        raise ValueError(
            f"Expected with --alignments: --n-best of at most {most}, as "
            f"exported. Received: {arguments.n_best}."
        )


def _print_warning(message: Any, *_: Any, **__: Any) -> None:
    """Print a warning in one line, with lines numbered from 1."""
    if isinstance(message, TruncationWarning):
        message = message.places.message(1)
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)


def _json_lines(
    client: TranslationClient,
    parts: Iterable[Sequence[str]],
    arguments: Ask,
    options: Any,
) -> Iterator[str]:
    """Yield an answer per line; errors and warnings count over all parts."""
    first, cut = 0, TruncatedPlaces()
    try:
        for part in parts:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TruncationWarning)
                nbest_lists = _nbest_lists(client, part, arguments, options)
            for place, nbest in enumerate(nbest_lists, first):
                cut.add(place, not nbest or any(one.truncated for one in nbest))
                entries = [
                    one.as_dict(links=arguments.alignments) for one in nbest
                ]
                yield json.dumps(entries, ensure_ascii=False)
            first += len(part)
    except TextTooLongError as error:
        places = [first + place for place in error.places]
        raise TextTooLongError(places, error.size, error.limit) from error
    finally:
        cut.warn(stacklevel=1)


def _nbest_lists(
    client: TranslationClient,
    lines: Sequence[str],
    arguments: Ask,
    options: Any,
) -> list[list[Any]]:
    if not arguments.alignments:
        return client.nbest(lines, n_best=arguments.n_best, **options)
    aligned = [
        client.align(lines, rank, **options) for rank in range(arguments.n_best)
    ]
    return [
        [
            translation
            for translation in nbest
            if translation.score > ABSENT_SCORE
        ]
        for nbest in zip(*aligned, strict=True)
    ]
