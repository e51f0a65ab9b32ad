"""Requests to TensorFlow Serving over REST, in its row form."""

from __future__ import annotations

import asyncio
import base64
import datetime
import email.utils
import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager
from typing import Any

import httpx
import numpy as np

from luong_keras_client.address import Address, TlsFiles
from luong_keras_client.calls import start
from luong_keras_client.errors import UNREADABLE, TranslationServerError

# HTTP status -> gRPC's name of it, as TensorFlow Serving maps them.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# Output -> its type; the others are float32.
_TYPES = {
    **dict.fromkeys(["translation", "translations", "status"], object),
    **dict.fromkeys(["tokens", "source_tokens"], object),
    **dict.fromkeys(["lengths", "source_lengths"], np.int32),
    **dict.fromkeys(["truncated", "truncations"], bool),
}
MAX_BYTES = 2**30  # of an answer
_encode = np.frompyfunc(str.encode, 1, 1)


class RestConnection:
    """One model at one REST address; `send` waits, `asend` is awaited."""

    def __init__(
        self, address: Address, tls: TlsFiles, asynchronous: bool
    ) -> None:
        self._url = address.model_url
        # Trusts nobody, which is enough where no TLS is spoken: to read whom
        # the world trusts takes longer than a translation.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        may_encrypt = address.encrypted or not address.is_loopback
        if may_encrypt and tls.ca_certificate is None:
            context = httpx.create_ssl_context()
        tls.load_into(context)
        kind = httpx.AsyncClient if asynchronous else httpx.Client
        self._client: Any = kind(
            headers={"content-type": "application/json", **address.headers},
            verify=context,
            # Whatever proxy the environment names.
            trust_env=not address.is_loopback,
            limits=httpx.Limits(max_keepalive_connections=64),
        )
        self.close = self._client.aclose if asynchronous else self._client.close

    def request(
        self,
        signature: str,
        columns: Mapping[str, np.ndarray],
        outputs: Sequence[str],
    ) -> tuple[Any, ...]:
        """What `send` takes."""
        values = [map(_json_value, x.tolist()) for x in columns.values()]
        rows = [dict(zip(columns, row)) for row in zip(*values)]
        body = {"signature_name": signature, "instances": rows}
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        return "POST", f"{self._url}:predict", text.encode()

    def arrays(
        self, answer: tuple[Any, ...], outputs: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """The arrays that a signature answers, strings as bytes."""
        return _read(answer, lambda x: _arrays(x["predictions"], outputs))

    def status_request(self) -> tuple[Any, ...]:
        """Likewise, for the states of the versions."""
        return "GET", self._url, None

    def states(self, answer: tuple[Any, ...]) -> dict[int, str]:
        """The state of every version."""
        return _read(
            answer,
            lambda x: {
                int(version["version"]): version["state"]
                for version in x["model_version_status"]
            },
        )

    def send(self, request: tuple[Any, ...], seconds: float) -> Any:
        """Status, headers and content, within so many seconds."""
        # In a thread: httpx limits the wait for each part of an answer alone.
        try:
            return start(self._send, request, seconds).result(seconds)
        except Late:
            raise _late(seconds) from None

    def _send(self, request: tuple[Any, ...], seconds: float) -> Any:
        method, url, body = request
        end, content = time.monotonic() + seconds, bytearray()
        with (
            _failures(),
            self._client.stream(
                method, url, content=body, timeout=seconds
            ) as response,
        ):
            for part in response.iter_bytes():
                _add(content, part)
                if time.monotonic() > end:
                    raise _late(seconds)
        return response.status_code, response.headers, bytes(content)

    async def asend(self, request: tuple[Any, ...], seconds: float) -> Any:
        """As `send`."""
        method, url, body = request
        content = bytearray()
        try:
            async with asyncio.timeout(seconds):
                with _failures():
                    async with self._client.stream(
                        method, url, content=body, timeout=None
                    ) as response:
                        async for part in response.aiter_bytes():
                            _add(content, part)
        except TimeoutError:
            raise _late(seconds) from None
        return response.status_code, response.headers, bytes(content)


def _late(seconds: float) -> TranslationServerError:
    return TranslationServerError(
        f"no answer within {seconds:.3g} s", "DEADLINE_EXCEEDED"
    )


def _add(content: bytearray, part: bytes) -> None:
    content += part
    if len(content) > MAX_BYTES:
        raise TranslationServerError(
            f"an answer of more than {MAX_BYTES} bytes", "MALFORMED"
        )


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException:
        raise TranslationServerError(
            "no answer in time", "DEADLINE_EXCEEDED"
        ) from None
    except (httpx.RequestError, httpx.InvalidURL, ssl.SSLError) as error:
        # Its text stands in ours, where it is looked through for secrets.
        raise _failure(error) from None


def _failure(error: Exception) -> TranslationServerError:
    causes: list[BaseException] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        if isinstance(cause, BaseExceptionGroup):
            # Of a host with several addresses.
            cause = cause.exceptions[-1]
        causes.append(cause)
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(
            cause, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return TranslationServerError(
                f"TLS failed, {cause}", "UNAUTHENTICATED"
            )
    if isinstance(error, httpx.InvalidURL | httpx.LocalProtocolError):
        return TranslationServerError(str(error), "INVALID_ARGUMENT")
    reasons = [
        os.strerror(cause.errno)
        if isinstance(cause, ConnectionError) and cause.errno
        else str(cause)
        for cause in reversed(causes)
    ]
    reason = next(filter(None, reasons), type(error).__name__)
    return TranslationServerError(reason, "UNAVAILABLE")


def _read(answer: tuple[Any, ...], read: Any) -> Any:
    """What an answer says; an error where it tells one, or nonsense."""
    status, headers, content = answer
    try:
        said = json.loads(content)
    except UNREADABLE:
        said = content
    if status == 200:
        try:
            return read(said)
        except UNREADABLE:
            raise TranslationServerError(
                f"an answer that begins with {content[:200]!r}", "MALFORMED"
            ) from None
    told = said.get("error") if isinstance(said, dict) else None
    told = told or content[:300].decode(errors="replace") or "no message"
    raise TranslationServerError(
        f"HTTP {status}, {told}",
        _CODES.get(status, f"HTTP_{status}"),
        seconds_to_wait(headers.get("Retry-After")),
    )


def seconds_to_wait(value: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date as HTTP writes it."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=datetime.UTC)
        left = date - datetime.datetime.now(datetime.UTC)
    except UNREADABLE:
        return None
    return max(left.total_seconds(), 0.0)


def _arrays(
    rows: Sequence[Mapping[str, Any]], outputs: Sequence[str]
) -> dict[str, np.ndarray]:
    """The outputs that are named, or all that there are."""
    if not outputs:
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
    arrays = {}
    for name in outputs:
        kind: Any = _TYPES.get(name, np.float32)
        array = np.array([row[name] for row in rows], kind)
        arrays[name] = _encode(array) if kind is object else array
    # JSON does not tell the axes behind one of size 0.
    if "alignments" in arrays and arrays["alignments"].size == 0:
        words, source = arrays["tokens"], arrays["source_tokens"]
        shape = *words.shape, source.shape[1]
        arrays["alignments"] = np.zeros(shape, np.float32)
    if "memory" in arrays and arrays["memory"].ndim == 2:
        arrays["memory"] = np.zeros((len(rows), 0, 0), np.float32)
    return arrays


def _json_value(value: Any) -> Any:
    """Bytes are base64 in TensorFlow Serving's way."""
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    return value
