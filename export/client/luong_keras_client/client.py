"""Blocking and asynchronous clients of a served translator."""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import time
from collections import abc, deque
from contextlib import aclosing
from functools import partial
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, Self, Unpack, cast

import numpy as np
import tenacity

from luong_keras_client import address, errors, modes, requests, responses
from luong_keras_client.errors import TranslationServerError, argument_error
from luong_keras_client.requests import Batches, Lines, Option, Request

# The server is unavailable or overloaded. Requests change nothing, so they may
# be sent again. A request whose time ran out is not sent again, because that
# would add load to a slow server.
_TRANSIENT_CODES = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
# Errors with the same code that a retry would repeat: a message that is too
# large, and a request that waited in a queue for the longest time allowed.
_PERMANENT_ERRORS = ("larger than max", "timeout exceeded while waiting")
# Programs that seed Python's generator must not retry at the same time.
_RANDOM = random.SystemRandom()
_CONTRACT = f"contract {responses.CONTRACT}"
# Another version of the model may have other limits.
_CONTRACT_SECONDS = 60
_NO_SIGNATURE = ("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION")


def _is_transient(error: BaseException) -> bool:
    message = str(error)
    if getattr(error, "code", None) in _TRANSIENT_CODES:
        return not any(text in message for text in _PERMANENT_ERRORS)
    return any(text in message for text in errors.OF_ANOTHER_REQUEST)


def _backoff_seconds(attempt: int) -> float:
    """Return a random time, so that clients differ; it doubles up to 8 s."""
    return min(0.1 * 2 ** min(attempt - 1, 10), 8) * _RANDOM.uniform(0.5, 1)


def _retry_seconds(state: Any) -> float:
    requested = getattr(state.outcome.exception(), "retry_after", None)
    return (requested or 0) + _backoff_seconds(state.attempt_number)


class _Client:
    """Common part of both clients; the blocking one suspends no coroutine.

    `_mode` has the functions that differ.
    """

    _mode: Any

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
        headers: abc.Mapping[str, str] | None = None,
        token: str | None = None,
        ca_certificate: address.File | None = None,
        client_certificate: address.File | None = None,
        client_key: address.File | None = None,
    ) -> None:
        if request_timeout is None:
            request_timeout = timeout
        for name, value, kind in (
            ("timeout", timeout, Real),
            ("request_timeout", request_timeout, Real),
            ("attempts", attempts, Integral),
            ("batch_size", batch_size, Integral),
            ("concurrency", concurrency, Integral),
        ):
            most = threading.TIMEOUT_MAX
            if not isinstance(value, kind) or not 0 < value <= most:
                number = "seconds" if kind is Real else "an integer"
                expected = f"`{name}`, {number} above 0, at most {most:g}"
                raise argument_error(expected, repr(value))
        if alignment_step not in ("produces", "reads"):
            expected = "`alignment_step`, 'produces' or 'reads'"
            raise argument_error(expected, repr(alignment_step))
        self._timeout = float(timeout)
        self._request_timeout = float(request_timeout)
        self._attempts, self._batch_size = attempts, batch_size
        self._concurrency, self._step = concurrency, alignment_step
        self._address = address.read_address(
            url, model, version, label, headers, token
        )
        files = ca_certificate, client_certificate, client_key
        tls = address.tls_context(self._address.is_encrypted, *files)
        is_grpc = self._address.scheme.startswith("grpc")
        name = "grpc_calls" if is_grpc else "rest"
        try:
            # Import only one of them, because imports take time.
            module: Any = import_module(f"luong_keras_client.{name}")
        except ImportError as error:
            raise ImportError(
                f"A package could not be imported ({error}). Install it with "
                "`pip install luong-keras-client[grpc]`."
            ) from error
        self._connect = partial(
            module.Connection, self._address, files, tls, self._mode
        )
        self._connection_lock = threading.Lock()
        self._contract_lock = self._mode.semaphore(1)
        self._connection: Any = None
        self._owner: Any = None
        self._closed, self._known_contract = False, cast(Any, None)
        self._contract_end = 0.0

    @property
    def url(self) -> str:
        """Address without the user and the password."""
        return self._address.url

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._address.model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.model!r})"

    def _current_owner(self) -> tuple[int, Any]:
        loop = asyncio.get_running_loop() if self._mode.is_async else None
        return os.getpid(), loop

    def _open_connection(self) -> Any:
        """Return the connection, which the first request makes."""
        owner = self._current_owner()
        with self._connection_lock:
            if self._closed:
                raise RuntimeError(
                    "Expected: an open client. Received: one that was closed. "
                    "Create a new client, or make the call inside the "
                    "`with` block."
                )
            if self._connection and self._owner != owner:
                where, each = "in another event loop", "loop"
                if self._owner[0] != owner[0]:
                    where, each = "after a fork", "process"
                raise RuntimeError(
                    "Expected: a client in the process and the event loop that "
                    f"used it first. Received: a call {where}. Make a client "
                    f"in each {each}."
                )
            try:
                if not self._connection:
                    self._connection = self._connect()
            except (ValueError, ImportError) as error:
                # For example, a wrong proxy of the environment, with its user.
                message = address.without_user(self._address.hide(str(error)))
                message += " Look at the proxies of the environment"
                raise argument_error(
                    f"connections to {self.url}", message
                ) from None
            self._owner = owner
            return self._connection

    async def _disconnect(self) -> None:
        with self._connection_lock:
            connection, self._connection = self._connection, None
            self._closed = True
        if connection and self._owner == self._current_owner():
            await connection.close()

    async def _fetch(self, request: Request) -> list[Any]:
        if not len(request):
            return []
        slots = self._mode.semaphore(self._concurrency)
        deadline = time.monotonic() + self._timeout
        batches = await self._make_batches(request, slots, deadline)
        await self._send_batches(batches)
        places = errors.TruncatedPlaces()
        try:
            return list(batches.results(places))
        finally:
            # At the line that calls, or awaits it outside of other tasks.
            places.warn(stacklevel=2 if self._mode.is_async else 4)

    async def _stream(self, lines: Any, options: Any) -> abc.AsyncIterator[str]:
        size = self._batch_size * self._concurrency
        slots = self._mode.semaphore(self._concurrency)
        first, places = 0, errors.TruncatedPlaces()
        sent: deque[tuple[Batches, Any]] = deque()
        failure: Exception | None = None

        async def oldest_texts() -> abc.Iterator[str]:
            await self._mode.join(sent[0][1])
            return sent.popleft()[0].results(places)

        try:
            async with aclosing(_split_parts(lines, size)) as parts:
                while True:
                    try:
                        part = await anext(parts)
                        request = requests.translation(part, options, first)
                        batches = await self._make_batches(request, slots)
                    except Exception as error:
                        # The end, or an error of the lines or the contract;
                        # the lines before have translations.
                        failure = error
                        break
                    if sent:  # one part at most
                        sent[0][0].following = batches
                        if sent[0][0].failure:
                            break
                    work = self._mode.start(self._send_batches(batches))
                    sent.append((batches, work))
                    first += len(part)
                    # Two parts, so that the server works while the caller
                    # uses results, unless only one request may be in flight.
                    if len(sent) == (1 if self._concurrency == 1 else 2):
                        for text in await oldest_texts():
                            yield text
            while sent:
                for text in await oldest_texts():
                    yield text
            if failure and not isinstance(failure, StopAsyncIteration):
                raise failure
        finally:
            for batches, _ in sent:
                batches.fail(GeneratorExit())
            await self._mode.stop([work for _, work in sent])
            places.warn(stacklevel=2 if self._mode.is_async else 4)

    async def _make_batches(
        self, request: Request, slots: Any, deadline: float = math.inf
    ) -> Batches:
        contract = await self._agree_on_contract(deadline)
        try:
            contract.check(request.columns)
        except ValueError:
            self._contract_end = 0.0  # The next call asks again.
            raise
        sizes = self._batch_size, self._attempts
        return Batches(request, contract, *sizes, deadline, slots)

    async def _send_batches(self, batches: Batches) -> None:
        """Send all requests, several at a time."""
        count = min(self._concurrency, len(batches.waiting))
        workers = [
            self._mode.start(self._send_in_turn(batches))
            for _ in range(count - 1)
        ]
        try:
            await self._send_in_turn(batches)
            for worker in workers:
                await self._mode.join(worker)
        except BaseException as error:  # Including Ctrl-C.
            batches.fail(error)
            await self._mode.stop(workers)
            raise

    async def _send_in_turn(self, batches: Batches) -> None:
        """Send one request after another."""
        request, deadline = batches.request, batches.deadline
        signature = request.signature
        what = f"an answer of signature {signature!r}"
        for places, refusals in batches:
            if refusals:
                remaining = max(deadline - time.monotonic(), 0)
                seconds = min(_backoff_seconds(refusals), remaining)
                await self._mode.sleep(seconds)
            columns = {
                name: column[places] for name, column in request.columns.items()
            }
            read = partial(responses.rows_of, len(places), request.read)
            async with batches.slots:
                try:
                    rows = await self._send(
                        what,
                        read,
                        deadline,
                        batches,
                        signature,
                        columns,
                        responses.OUTPUTS[signature],
                    )
                    batches.take(places, refusals, rows)
                except Exception as error:
                    # The server may have another version.
                    self._contract_end = 0.0
                    batches.fail(error)

    async def _agree_on_contract(
        self, deadline: float = math.inf
    ) -> responses.Contract:
        self._open_connection()
        # The wait for the answer to another call counts, too.
        deadline = min(deadline, time.monotonic() + self._timeout)
        async with self._contract_lock:
            if time.monotonic() >= self._contract_end:
                # The server ignores the text.
                columns = {"text": np.array([""], object)}
                request = "contract", columns, ()
                self._known_contract = await self._send(
                    _CONTRACT, responses.contract_of, deadline, None, *request
                )
                self._contract_end = time.monotonic() + _CONTRACT_SECONDS
            return self._known_contract

    async def _send(
        self, what: str, read: Any, deadline: float, batches: Any, *request: Any
    ) -> Any:
        """Send a request, or one for the states, with retries."""
        end = min(deadline, time.monotonic() + self._timeout)

        async def attempt() -> Any:
            if batches and batches.failure:
                raise RuntimeError("another request failed")
            remaining = end - time.monotonic()
            if remaining <= 0:
                text = "no time is left"
                raise TranslationServerError(text, "DEADLINE_EXCEEDED")
            seconds = min(remaining, self._request_timeout)
            connection = self._open_connection()
            if not request:
                return await connection.states(seconds)
            answer = await connection.predict(*request, seconds)
            try:
                return read(answer)
            except errors.UNREADABLE as error:
                text = f"an answer with {error!r}"
                raise TranslationServerError(text, "MALFORMED") from None

        retrying = tenacity.AsyncRetrying(
            sleep=self._mode.sleep,
            retry=tenacity.retry_if_exception(_is_transient),
            wait=_retry_seconds,
            # 0.1 s is too short for any response but a timeout.
            stop=tenacity.stop_after_attempt(self._attempts)
            | tenacity.stop_before_delay(end - time.monotonic() - 0.1),
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except TranslationServerError as error:
            absent = "signature" in str(error) and error.code in _NO_SIGNATURE
            if what == _CONTRACT and absent:
                text = "a model without one"
                error = TranslationServerError(text, "CONTRACT")
            where = self.url
            unreached = error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
            if unreached and (proxy := self._address.proxy):
                where += f" (the environment names the proxy {proxy})"
            raise error.explained(
                f"{what} of model {self.model!r} at {where} within "
                f"{self._timeout:g} s",
                retrying.statistics["attempt_number"],
                self._address.hide,
            ) from None


async def _split_parts(lines: Any, size: int) -> abc.AsyncGenerator[list[Any]]:
    """Yield parts of the lines, also of those before an error."""
    part: list[Any] = []
    place, failure = 0, None
    try:
        async for line in modes.iterate(lines):
            requests.check_text(line, "lines", place)
            place += 1
            part.append(line)
            if len(part) == size:
                yield part
                part = []
    except Exception as error:
        failure = error
    if part:
        yield part
    if failure:
        raise failure


class TranslationClient(_Client):
    """Blocking client of a translator in TensorFlow Serving.

    A method sends its lines, `str` or UTF-8 `bytes`, in batches of similar
    length, several at a time. Results are in the order of the lines. An option
    is one value or one per line; if absent or None, it is as exported. A call
    warns once if lines were cut; cut pairs are only `truncated`. Threads may
    share a client, processes may not. The README describes all arguments.

    Raises:
        TranslationServerError: By every method, if the server refuses a
            request, does not respond in time or sends an unexpected response.
        TextTooLongError: By every method, if a text exceeds the server's limit.
    """

    _mode = modes.Waiting

    def translate(
        self, lines: Lines, **options: Unpack[requests.SearchSettings]
    ) -> list[str]:
        """Return the best translation of each line.

        With options, an export that samples draws one sample for each line; the
        first of `nbest` is the best of as many samples as exported.
        """
        request = requests.translation(lines, options)
        return self._mode.result(self._fetch(request))

    def translate_lines(
        self,
        lines: abc.Iterable[str | bytes],
        **options: Unpack[requests.SearchSettings],
    ) -> abc.Iterator[str]:
        """Iterate over the translations of any number of lines.

        The iterator reads at most two times `batch_size` x `concurrency` lines
        ahead; if `concurrency` is 1, it yields each batch before it reads the
        next one. Each option is one value. An error, also one of `lines`, is
        raised after the translations of all lines before the first line without
        one.
        """
        requests.check_stream(lines, options)
        return self._mode.iterator(self._stream(lines, options))

    def nbest(
        self, lines: Lines, **options: Unpack[requests.NbestSettings]
    ) -> list[list[responses.TranslatedText]]:
        """Return the `n_best` translations of each line, the best first."""
        return self._mode.result(self._fetch(requests.nbest(lines, options)))

    def align(
        self,
        lines: Lines,
        rank: Option = 0,
        **options: Unpack[requests.BeamSettings],
    ) -> list[responses.Translation]:
        """Return one translation of each line with words, weights and links.

        `rank` chooses the translation; 0 is the best. If the search found
        fewer, the translation is empty and has the score -1e30.
        """
        request = requests.alignment(lines, rank, options, self._step)
        return self._mode.result(self._fetch(request))

    def score(
        self, sources: Lines, targets: Lines
    ) -> list[responses.TranslationScore]:
        """Score given translations by their log-probability."""
        request = requests.pairs("score", sources, targets)
        return self._mode.result(self._fetch(request))

    def align_pairs(
        self, sources: Lines, targets: Lines
    ) -> list[responses.ScoredTranslation]:
        """Score given translations, and return the attention weights too."""
        request = requests.pairs("align_pair", sources, targets)
        return self._mode.result(self._fetch(request))

    def encode(self, lines: Lines) -> list[np.ndarray]:
        """Return the encoder's vectors of each line, (S, M) float32."""
        return self._mode.result(self._fetch(requests.encoding(lines)))

    def contract(self) -> responses.Contract:
        """Return the limits of the server, at most a minute old.

        The client asks for them again after an error, too.
        """
        return self._mode.result(self._agree_on_contract())

    def status(self) -> dict[int, str]:
        """Return the state of each version; `"AVAILABLE"` if it is served."""
        work = self._send("the status", None, math.inf, None)
        return self._mode.result(work)

    def close(self) -> None:
        """Close the connections; the client cannot be used afterwards."""
        return self._mode.result(self._disconnect())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncTranslationClient(_Client):
    """Asynchronous `TranslationClient`: its methods are awaited, for asyncio.

    Cancelling a call cancels its requests. A client belongs to the event loop
    that used it first.
    """

    _mode = modes.Awaited
    translate = modes.awaitable(TranslationClient.translate)
    nbest = modes.awaitable(TranslationClient.nbest)
    align = modes.awaitable(TranslationClient.align)
    score = modes.awaitable(TranslationClient.score)
    align_pairs = modes.awaitable(TranslationClient.align_pairs)
    encode = modes.awaitable(TranslationClient.encode)
    contract = modes.awaitable(TranslationClient.contract)
    status = modes.awaitable(TranslationClient.status)
    aclose = modes.awaitable(TranslationClient.close)

    def translate_lines(
        self,
        lines: abc.Iterable[str | bytes] | abc.AsyncIterable[str | bytes],
        **options: Unpack[requests.SearchSettings],
    ) -> abc.AsyncIterator[str]:
        """Iterate over translations; `lines` may be asynchronous as well."""
        requests.check_stream(lines, options)
        return self._stream(lines, options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
