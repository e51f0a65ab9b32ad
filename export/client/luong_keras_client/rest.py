"""Requests to TensorFlow Serving over REST, in its row format."""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np

from luong_keras_client.address import Address
from luong_keras_client.errors import UNREADABLE, TranslationServerError
from luong_keras_client.modes import iterate

MAX_BYTES = 2**30  # of a response
# HTTP status -> gRPC code, as TensorFlow Serving maps them.
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
# Output -> its type; all other outputs are float32.
_TYPES = {
    "translation": object,
    "translations": object,
    "status": object,
    "tokens": object,
    "source_tokens": object,
    "lengths": np.int32,
    "source_lengths": np.int32,
    "truncated": np.int8,  # `bool` would read any text as True.
    "truncations": np.int8,
}
_encode = np.frompyfunc(str.encode, 1, 1)


class Connection:
    """Connection to one model at one REST address."""

    def __init__(
        self, address: Address, files: Any, tls: Any, mode: Any
    ) -> None:
        self._url, self._mode = address.model_url, mode
        # The names of httpx's asynchronous methods begin with it.
        self._prefix = "a" if mode.is_async else ""
        if tls is None:
            # Loading the trusted authorities takes longer than a translation.
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if address.is_encrypted or not address.is_loopback:
                tls = httpx.create_ssl_context()
        kind: Any = httpx.AsyncClient if mode.is_async else httpx.Client
        self._client = kind(
            headers={"content-type": "application/json", **address.headers},
            verify=tls,
            # Proxies of the environment, except for this machine.
            trust_env=not address.is_loopback,
            limits=httpx.Limits(max_keepalive_connections=64),
        )

    async def predict(
        self, signature: str, columns: Any, outputs: Any, seconds: float
    ) -> dict[str, np.ndarray]:
        """Return outputs of the model."""
        values = zip(*(x.tolist() for x in columns.values()), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in values]
        body = {"signature_name": signature, "instances": rows}
        text = json.dumps(body, ensure_ascii=False, default=_base64)
        return await self._send(
            lambda body: _rows_to_arrays(body["predictions"], outputs),
            seconds,
            "POST",
            f"{self._url}:predict",
            text.encode(),
        )

    async def states(self, seconds: float) -> dict[int, str]:
        """Return the state of each version."""
        return await self._send(
            lambda body: {
                int(version["version"]): version["state"]
                for version in body["model_version_status"]
            },
            seconds,
            "GET",
            self._url,
        )

    async def close(self) -> None:
        await self._mode.value(getattr(self._client, self._prefix + "close")())

    async def _send(self, read: Any, seconds: float, *request: Any) -> Any:
        """Send a request, and read the response."""
        try:
            # In all, because httpx limits only the wait for each part.
            work = self._mode.start(self._receive(seconds, *request))
            answer = await self._mode.join(work, seconds)
        except (TimeoutError, httpx.TimeoutException):
            text = f"no answer within {seconds:.3g} s"
            error = TranslationServerError(text, "DEADLINE_EXCEEDED")
            raise error from None
        except (httpx.RequestError, httpx.InvalidURL, ssl.SSLError) as error:
            # Not chained: secrets are hidden only in the new error's text.
            raise _connection_error(error) from None
        return _parse_response(read, *answer)

    async def _receive(
        self, seconds: float, method: str, url: str, body: Any = None
    ) -> tuple[httpx.Response, bytearray]:
        end, content = time.monotonic() + seconds, bytearray()
        request = self._client.build_request(
            method, url, content=body, timeout=seconds
        )
        sent = self._client.send(request, stream=True)
        response = await self._mode.value(sent)
        try:
            parts = getattr(response, self._prefix + "iter_bytes")()
            async for part in iterate(parts):
                content += part
                if len(content) > MAX_BYTES:
                    text = f"an answer of more than {MAX_BYTES} bytes"
                    raise TranslationServerError(text, "MALFORMED")
                if time.monotonic() > end:
                    raise TimeoutError
        finally:
            await self._mode.value(getattr(response, self._prefix + "close")())
        return response, content


def _connection_error(error: Exception) -> TranslationServerError:
    causes: list[Any] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        # A host with several addresses causes a group of errors.
        causes.append(getattr(cause, "exceptions", [cause])[-1])
    for cause in causes:
        cut_off = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        if isinstance(cause, ssl.SSLError) and not cut_off:
            text = f"TLS failed, {cause}"
            return TranslationServerError(text, "UNAUTHENTICATED")
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


def _parse_response(
    read: Callable[[Any], Any], response: httpx.Response, content: bytearray
) -> Any:
    """Read a response; raise its error, or one if it is unreadable."""
    status, headers = response.status_code, response.headers
    try:
        body = json.loads(content)
        if status == 200:
            return read(body)
        message = body["error"]
    except UNREADABLE:
        message = content[:300].decode(errors="replace")
        if status == 200:
            text = f"an answer that begins with {message[:200]}"
            raise TranslationServerError(text, "MALFORMED") from None
    if 300 <= status < 400:
        message = f"a redirection to {headers.get('Location')}"
    raise TranslationServerError(
        f"HTTP {status}, {message or 'no message'}",
        _CODES.get(status, f"HTTP_{status}"),
        seconds_to_wait(headers.get("Retry-After")),
    )


def seconds_to_wait(value: str | None) -> float | None:
    """Return the seconds of `Retry-After`; None for a date."""
    return float(value) if value and value.strip().isdecimal() else None


def _rows_to_arrays(rows: Any, outputs: Any) -> dict[str, np.ndarray]:
    arrays = {}
    for name in outputs or rows[0]:
        # Without names, as for the contract, NumPy chooses the type.
        kind: Any = _TYPES.get(name, np.float32) if outputs else None
        array = np.array([row[name] for row in rows], kind)
        arrays[name] = _encode(array) if kind is object else array
    # JSON loses the axes after an axis of size 0.
    if "alignments" in arrays and arrays["alignments"].size == 0:
        shape = (*arrays["tokens"].shape, arrays["source_tokens"].shape[1])
        arrays["alignments"] = np.zeros(shape, np.float32)
    if "memory" in arrays and arrays["memory"].ndim == 2:
        arrays["memory"] = np.zeros((len(rows), 0, 0), np.float32)
    return arrays


def _base64(text: bytes) -> dict[str, str]:
    """Return the JSON of bytes for TensorFlow Serving."""
    return {"b64": base64.b64encode(text).decode()}
