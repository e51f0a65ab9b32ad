"""A client of a served translator."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, Self, Unpack

import numpy as np
from tenacity import Retrying

from luong_keras_client import requests
from luong_keras_client.address import (
    File,
    TlsFiles,
    read_address,
    without_user,
)
from luong_keras_client.calls import (
    Attempts,
    Batches,
    Settings,
    start,
    understood,
    waiting_time,
)
from luong_keras_client.errors import TruncatedPlaces, wrong
from luong_keras_client.requests import (
    BeamSettings,
    Lines,
    NbestSettings,
    Option,
    Question,
    Result,
    SearchSettings,
)
from luong_keras_client.responses import (
    Contract,
    ScoredTranslation,
    TranslatedText,
    Translation,
    TranslationScore,
    contract_of,
    outputs_of,
    rows_of,
)


class BaseClient:
    """The arguments of both clients; see `TranslationClient`."""

    _asynchronous = False
    _lock: Any = threading.Lock

    def __init__(
        self,
        url: str = "http://localhost:8501",
        model: str = "translator",
        *,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
        request_timeout: float | None = None,
        attempts: int = 5,
        batch_size: int = 32,
        concurrency: int = 4,
        alignment_step: Literal["produces", "reads"] = "produces",
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        ca_certificate: File | None = None,
        client_certificate: File | None = None,
        client_key: File | None = None,
    ) -> None:
        self._settings = Settings(
            *(timeout, request_timeout, attempts, batch_size, concurrency),
            alignment_step,
        )
        self._address = read_address(url, model, version, label, headers, token)
        self._tls = TlsFiles(ca_certificate, client_certificate, client_key)
        self._tls.check(self._address.encrypted)
        # Imported here, where what is missing is told.
        self._kind: Any
        if self._address.scheme in ("grpc", "grpcs"):
            try:
                from luong_keras_client.grpc_calls import GrpcConnection
            except ImportError as error:
                raise ImportError(
                    f"This needs the package `grpcio`, which could not be "
                    f"imported ({error}). Install it with `pip install "
                    "luong-keras-client[grpc]`."
                ) from error
            self._kind = GrpcConnection
        else:
            from luong_keras_client.rest import RestConnection

            self._kind = RestConnection
        self._open: Any = None
        self._opening = threading.Lock()
        self._home: Any = None
        self._closed = False
        self._asking = self._lock()
        self._known: Contract | None = None

    @property
    def url(self) -> str:
        """The address, without a user and a password."""
        return self._address.url

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._address.model

    def __repr__(self) -> str:
        """Where it asks, without what lets it in."""
        return f"{type(self).__name__}({self.url!r}, {self.model!r})"

    def _here(self) -> tuple[int, Any]:
        loop = asyncio.get_running_loop() if self._asynchronous else None
        return os.getpid(), loop

    def _connection(self) -> Any:
        """The connections, which are made at the first question."""
        home = self._here()
        if self._closed:
            raise RuntimeError(
                "Expected: an open client. Received: one that was closed. "
                "Make another one, or ask inside of `with`."
            )
        if self._open is not None and self._home != home:
            forked = self._home[0] != os.getpid()
            raise RuntimeError(
                "Expected: a client in the process and the event loop that "
                "used it first. Received: a call "
                f"{'after a fork' if forked else 'in another event loop'}. "
                f"Make a client in each {'process' if forked else 'loop'}."
            )
        with self._opening:
            if self._open is None:
                try:
                    self._open = self._kind(
                        self._address, self._tls, self._asynchronous
                    )
                except (ValueError, ImportError) as error:
                    # Such as a proxy of the environment, with its user.
                    told = without_user(self._address.hide(str(error)))
                    raise wrong(
                        f"connections to {self.url}",
                        f"{told} Look at the certificates and the proxies of "
                        "the environment",
                    ) from None
                self._home = home
        return self._open

    def _attempts(self, signature: str | None, deadline: float) -> Attempts:
        where = f"model {self.model!r} at {self.url}"
        return Attempts(
            *(self._settings, signature, where, deadline, self._address.hide)
        )

    def _deadline(self) -> float:
        return time.monotonic() + self._settings.timeout

    def _batches(
        self, question: Question[Result], contract: Contract
    ) -> Batches[Result]:
        limits = contract.max_rows, contract.max_text_bytes
        return Batches(question, self._settings, *limits)

    def _request(
        self, question: Question[Any], places: np.ndarray, contract: Contract
    ) -> tuple[Any, ...]:
        """Signature, what to send, and how to read what comes."""
        signature, connection = question.signature, self._connection()
        columns = {name: x[places] for name, x in question.columns.items()}
        outputs = outputs_of(signature, contract.version)

        def read(answer: Any) -> list[Any]:
            arrays = connection.arrays(answer, outputs)
            return rows_of(arrays, len(places), question.read)

        return signature, connection.request(signature, columns, outputs), read

    def _contract_request(self) -> tuple[Any, ...]:
        # What it reads is not looked at.
        columns, connection = (
            {"text": np.array([""], object)},
            self._connection(),
        )
        return (
            *("contract", connection.request("contract", columns, [])),
            lambda answer: contract_of(connection.arrays(answer, [])),
        )

    def _status_request(self) -> tuple[Any, ...]:
        connection = self._connection()
        return None, connection.status_request(), connection.states

    def _parts(self, lines: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
        """Lines that are sent together, and the place of the first."""
        size = self._settings.batch_size * self._settings.concurrency
        lines = iter(lines)
        for first in itertools.count(0, size):
            part = list(itertools.islice(lines, size))
            if not part:
                return
            yield first, part

    @property
    def _parts_in_flight(self) -> int:
        """Two, so that the server has work while results are used.

        One where nothing shall be in flight beside it.
        """
        return 1 if self._settings.concurrency == 1 else 2


class TranslationClient(BaseClient):
    """Asks a translator in TensorFlow Serving.

    A method sends its lines in batches of like length, several at a time;
    results come in the order of the lines. A request to a server that cannot
    be reached or has too much to do is repeated, later and later, or when the
    server says. Threads may share a client, processes may not. A line is a
    `str`, or `bytes` in UTF-8.

    Args:
        url: `http://HOST:PORT` or `https://…` of the REST interface, or
            `grpc://HOST:PORT` or `grpcs://…`. A user and a password in it are
            sent, and shown nowhere. To an address of this machine no proxy is
            asked; to others those of the environment.
        model: the name that the server has for the model.
        version: the number of a version; the newest when None.
        label: the label of a version, instead of its number.
        timeout: seconds that a call may take, with all of its requests and
            repetitions; in `translate_lines`, each request with its
            repetitions.
        request_timeout: seconds that one request may take; it is not sent
            again then.
        attempts: how often a request is sent at most.
        batch_size: lines in a request, at most `max_rows` of the contract.
        concurrency: requests of a call that are in flight at once.
        alignment_step: whose weights make the links of a translation, as the
            run's `decoding.alignment_step`.
        headers: that go with every request, by their names.
        token: sent as `Authorization: Bearer TOKEN`; when None, that of the
            environment variable `LUONG_KERAS_TOKEN`, if it is there.
        ca_certificate: a file with the certificates of the authorities that
            may have signed the server's, instead of those known everywhere.
        client_certificate: a file with what the client shows of itself.
        client_key: its private key, where that is in another file.

    Raises:
        TranslationServerError: by every method; see there.
        TextTooLongError: likewise, after all other lines were answered.
    """

    def translate(
        self, lines: Lines, **options: Unpack[SearchSettings]
    ) -> list[str]:
        """The best translation of every line.

        An option is one value or one for each line; what is left out, or
        None, is as exported. Warns once of lines that were cut.
        """
        return self._ask(requests.translation(lines, options))

    def translate_lines(
        self, lines: Iterable[str | bytes], **options: Unpack[SearchSettings]
    ) -> Iterator[str]:
        """The translations of any number of lines, as they come.

        It reads at most two times `batch_size` x `concurrency` lines ahead,
        and with a `concurrency` of 1 answers each batch before it reads on.
        Options are one value each. An error is raised after the translations
        before the line that has none.
        """
        requests.check_stream(lines, options)
        return self._lines(lines, options)

    def nbest(
        self, lines: Lines, **options: Unpack[NbestSettings]
    ) -> list[list[TranslatedText]]:
        """The `n_best` translations of every line, the best first."""
        return self._ask(requests.nbest(lines, options))

    def align(
        self, lines: Lines, rank: Option = 0, **options: Unpack[BeamSettings]
    ) -> list[Translation]:
        """One translation of every line, with its words, weights and links.

        `rank` says which one, 0 the best. Where the search found fewer, the
        translation is empty and has the score -1e30.
        """
        step = self._settings.alignment_step
        asked = {"rank": rank, **options}
        return self._ask(requests.alignment(lines, asked, step))

    def score(self, sources: Lines, targets: Lines) -> list[TranslationScore]:
        """How probable given translations are."""
        return self._ask(requests.pairs("score", sources, targets))

    def align_pairs(
        self, sources: Lines, targets: Lines
    ) -> list[ScoredTranslation]:
        """As `score`, with the attention weights."""
        return self._ask(requests.pairs("align_pair", sources, targets))

    def encode(self, lines: Lines) -> list[np.ndarray]:
        """The encoder's vectors of every line, (S, M) float32."""
        return self._ask(requests.encoding(lines))

    def contract(self) -> Contract:
        """What the server takes; it is asked once, at the first call."""
        return self._agreed(self._deadline())

    def status(self) -> dict[int, str]:
        """Version -> its state; `"AVAILABLE"` where it is served."""
        return self._send(self._status_request, self._deadline())

    def close(self) -> None:
        """Closes the connections; the client cannot be used then."""
        connection, self._open, self._closed = self._open, None, True
        if connection is not None and self._home == self._here():
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, question: Question[Result]) -> list[Result]:
        if not len(question):
            return []
        deadline = self._deadline()
        contract = self._agreed(deadline)
        batches = self._batches(question, contract)
        self._run(batches, contract, lambda: deadline)
        return batches.answers(stacklevel=3)

    def _agreed(self, deadline: float) -> Contract:
        self._connection()
        with self._asking:
            if self._known is None:
                self._known = self._send(self._contract_request, deadline)
        return self._known

    def _send(self, request: Any, deadline: float) -> Any:
        connection = self._connection()
        signature, message, read = request()
        attempts = self._attempts(signature, deadline)
        with attempts.explained():
            for attempt in Retrying(**attempts.policy):
                with attempt:
                    answer = connection.send(message, attempts.seconds())
                    return understood(lambda: read(answer))

    def _run(
        self,
        batches: Batches[Any],
        contract: Contract,
        deadline: Any,
        slots: AbstractContextManager[Any] = nullcontext(),
    ) -> None:
        """Sends all requests, this thread one after the other as well."""

        def work() -> None:
            with batches.noting_failures():
                for places, sent in batches:
                    if sent:
                        time.sleep(waiting_time(sent))
                    with slots:
                        request = partial(
                            self._request, batches.question, places, contract
                        )
                        rows = self._send(request, deadline())
                    batches.take(places, sent, rows)

        others = [start(work) for _ in range(batches.workers - 1)]
        try:
            work()
            for other in others:
                other.result()
        except BaseException as error:  # Such as Ctrl-C.
            batches.failure = error
            raise

    def _lines(self, lines: Any, options: Any) -> Iterator[str]:
        slots = threading.Semaphore(self._settings.concurrency)
        waiting: deque[tuple[Batches[str], Future[None]]] = deque()
        places = TruncatedPlaces()

        def oldest() -> Iterator[str]:
            waiting[0][1].result()
            return waiting.popleft()[0].part_of_stream(places)

        try:
            for first, part in self._parts(lines):
                question = requests.translation(part, options, first)
                contract = self._agreed(self._deadline())
                batches = self._batches(question, contract)
                done = start(
                    self._run, batches, contract, self._deadline, slots
                )
                waiting.append((batches, done))
                if len(waiting) == self._parts_in_flight:
                    yield from oldest()
            while waiting:
                yield from oldest()
        finally:
            for batches, _ in waiting:
                batches.failure = GeneratorExit()
        places.warn(stacklevel=2)
