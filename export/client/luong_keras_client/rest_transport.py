"""Requests to TensorFlow Serving over REST, in its row form."""

from __future__ import annotations

import base64
import datetime
import email.utils
import json
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from luong_keras_client.answer_columns import answer_columns
from luong_keras_client.server_address import ServerAddress
from luong_keras_client.server_error import (
    UNREADABLE,
    TranslationServerError,
    missing_package,
)
from luong_keras_client.tls_files import TlsFiles

try:
    import httpx
except ImportError as error:
    raise missing_package("httpx", error) from error

_IDLE_CONNECTIONS = 64
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


class RestTransport:
    """One model at one REST address, over connections that stay open.

    Args:
        address: of the server and the model.
        tls: the certificates.
    """

    def __init__(self, address: ServerAddress, tls: TlsFiles) -> None:
        self._url = address.model_url
        # Trusts nobody, which is enough where no TLS is spoken: to read whom
        # the world trusts takes longer than a translation.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        may_encrypt = address.encrypted or not address.is_loopback
        if may_encrypt and tls.ca_certificate is None:
            context = httpx.create_ssl_context()
        tls.load_into(context)
        self._client = httpx.AsyncClient(
            headers=dict(address.headers),
            verify=context,
            # Whatever proxy the environment names.
            trust_env=not address.is_loopback,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=_IDLE_CONNECTIONS,
            ),
            timeout=None,  # Whoever calls has one for the whole of a request.
        )

    async def predict(
        self,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        timeout: float,
    ) -> dict[str, np.ndarray]:
        """The arrays that a signature answers, strings as bytes."""
        del timeout
        columns = [_json_values(column) for column in inputs.values()]
        rows = [
            dict(zip(inputs, row, strict=True))
            for row in zip(*columns, strict=True)
        ]
        body = {"signature_name": signature, "instances": rows}
        answer = await self._request("POST", ":predict", body)
        try:
            return answer_columns(answer["predictions"], outputs)
        except UNREADABLE:
            raise _malformed(answer) from None

    async def status(self, timeout: float) -> dict[int, str]:
        """The state of every version."""
        del timeout
        answer = await self._request("GET", "")
        try:
            return {
                int(version["version"]): version["state"]
                for version in answer["model_version_status"]
            }
        except UNREADABLE:
            raise _malformed(answer) from None

    async def aclose(self) -> None:
        """Closes the open connections."""
        await self._client.aclose()

    async def _request(self, method: str, suffix: str, body: Any = None) -> Any:
        try:
            response = await self._client.request(
                method, self._url + suffix, json=body
            )
        except (
            httpx.RequestError,
            httpx.InvalidURL,
            ssl.SSLError,
        ) as error:
            # Its text stands in ours, where it is looked through for secrets.
            raise _failure(error) from None
        return _answer(response)


def _failure(error: Exception) -> TranslationServerError:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(
            cause, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return TranslationServerError(
                f"TLS failed, {_reason(cause)}", "UNAUTHENTICATED"
            )
    if isinstance(error, httpx.InvalidURL | httpx.LocalProtocolError):
        return TranslationServerError(str(error), "INVALID_ARGUMENT")
    reasons = filter(None, map(_reason, reversed(causes)))
    reason = next(reasons, type(error).__name__)
    return TranslationServerError(reason, "UNAVAILABLE")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it comes from, the deepest one last."""
    while error is not None:
        yield error
        following = error.__cause__ or error.__context__
        if isinstance(following, BaseExceptionGroup):
            # Of a host with several addresses.
            following = following.exceptions[-1]
        error = following


def _reason(error: BaseException) -> str:
    number = getattr(error, "errno", None)
    if isinstance(error, ConnectionError) and number:
        return os.strerror(number)
    return str(error)


def _answer(response: httpx.Response) -> Any:
    """The answer read as JSON, if it can be; an error where it tells one."""
    content = response.content
    try:
        answer = json.loads(content)
    except UNREADABLE:
        answer = content
    if response.status_code == 200:
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    told = told or content[:300].decode(errors="replace") or "no message"
    raise TranslationServerError(
        f"HTTP {response.status_code}, {told}",
        _CODES.get(response.status_code, f"HTTP_{response.status_code}"),
        seconds_to_wait(response.headers.get("Retry-After")),
    )


def seconds_to_wait(value: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date as HTTP writes it.

    Example:
        >>> seconds_to_wait("120"), seconds_to_wait("soon")
        (120.0, None)
        >>> seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT")
        0.0
    """
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


def _malformed(answer: Any) -> TranslationServerError:
    return TranslationServerError(
        f"an answer that begins with {str(answer)[:200]}", "MALFORMED"
    )


def _json_values(array: np.ndarray) -> list[Any]:
    """What JSON can say; bytes are base64 in TensorFlow Serving's way."""
    return [
        {"b64": base64.b64encode(value).decode()}
        if isinstance(value, bytes)
        else value
        for value in array.tolist()
    ]
