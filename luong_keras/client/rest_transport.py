"""Requests to TensorFlow Serving over REST, in its column form."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from luong_keras.client.server_error import TranslationServerError
from luong_keras.missing_package import missing_package

try:
    import requests
except ImportError as error:
    raise missing_package("requests", error, "serve") from error
import urllib3  # which requests stands on
from requests.adapters import HTTPAdapter

_OPEN_CONNECTIONS = 64
_PART = 2**16  # bytes of an answer that are read at a time
# HTTP status -> gRPC's name of it.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "UNAVAILABLE",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "UNAVAILABLE",
}
# The first kind that a failure is of decides.
_FAILURES = (
    (
        (requests.Timeout, urllib3.exceptions.TimeoutError),
        "DEADLINE_EXCEEDED",
    ),
    (requests.exceptions.SSLError, "UNAUTHENTICATED"),
    (
        (requests.ConnectionError, urllib3.exceptions.HTTPError),
        "UNAVAILABLE",
    ),
    (requests.RequestException, "INVALID_ARGUMENT"),
)
# Output -> its type; the others are float32.
_TYPES = {
    **dict.fromkeys(["translation", "translations"], object),
    **dict.fromkeys(["tokens", "source_tokens"], object),
    **dict.fromkeys(["lengths", "source_lengths"], np.int32),
    "truncated": bool,
}


class RestTransport:
    """One model at one REST address, over connections that stay open.

    Args:
        url: `http://HOST:PORT`, before `/v1/models`.
        model: the name of the model.
        version: its number or label; the newest when None.
    """

    def __init__(self, url: str, model: str, version: int | str | None) -> None:
        self._url = f"{url.rstrip('/')}/v1/models/{quote(model, safe='')}"
        if version is not None:
            kind = "versions" if isinstance(version, int) else "labels"
            self._url += f"/{kind}/{quote(str(version), safe='')}"
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(
                scheme, HTTPAdapter(pool_maxsize=_OPEN_CONNECTIONS)
            )

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], timeout: float
    ) -> dict[str, np.ndarray]:
        """The arrays that a signature answers, strings as bytes."""
        columns = {name: _json_values(x) for name, x in inputs.items()}
        body = {"signature_name": signature, "inputs": columns}
        answer = self._request("POST", ":predict", timeout, body)
        try:
            return _arrays(answer["outputs"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(answer) from error

    def status(self, timeout: float) -> dict[int, str]:
        """The state of every version."""
        answer = self._request("GET", "", timeout)
        try:
            return {
                int(version["version"]): version["state"]
                for version in answer["model_version_status"]
            }
        except (LookupError, TypeError, ValueError) as error:
            raise _malformed(answer) from error

    def close(self) -> None:
        """Closes the open connections."""
        self._session.close()

    def _request(self, method, suffix, timeout, body=None) -> Any:
        deadline = time.monotonic() + timeout
        try:
            with self._session.request(
                method,
                self._url + suffix,
                json=body,
                # Requests hands it on, though its types do not say so.
                timeout=urllib3.Timeout(total=timeout),  # type: ignore[arg-type]
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _content(response, deadline)
        except (
            requests.RequestException,
            urllib3.exceptions.HTTPError,
        ) as error:
            code = next(c for kinds, c in _FAILURES if isinstance(error, kinds))
            raise TranslationServerError(_reason(error), code) from error
        return _answer(response.status_code, content)


def _reason(error: Exception) -> str:
    """What happened, without the layers that passed it on."""
    inner = getattr(error, "reason", None) or (error.args or [None])[-1]
    return _reason(inner) if isinstance(inner, Exception) else str(error)


def _content(response: requests.Response, deadline: float) -> bytes:
    """The body, which may come slowly, but not for longer than the rest."""
    content = bytearray()
    # Only a read of at most so much notices an answer that breaks off.
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise requests.Timeout("the answer did not end in time")
        if connection := getattr(response.raw.connection, "sock", None):
            connection.settimeout(left)
        part = response.raw.read1(_PART, decode_content=True)
        if not part:
            return bytes(content)
        content += part


def _answer(status: int, content: bytes) -> Any:
    """The answer read as JSON, if it can be; an error where it tells one."""
    try:
        answer = json.loads(content)
    except ValueError:
        answer = content
    if status == 200:
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    told = told or content[:300].decode(errors="replace") or "no message"
    raise TranslationServerError(
        f"HTTP {status}, {told}",
        _CODES.get(status, f"HTTP_{status}"),
    )


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


def _arrays(outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    arrays = {}
    for name, values in outputs.items():
        kind = _TYPES.get(name, np.float32)
        arrays[name] = np.array(values, kind)
        if kind is object:
            arrays[name] = np.frompyfunc(str.encode, 1, 1)(arrays[name])
    if "alignments" in arrays and arrays["alignments"].size == 0:
        # JSON does not tell the axes behind one of size 0.
        width = arrays["source_tokens"].shape[1]
        arrays["alignments"] = np.zeros(
            (*arrays["tokens"].shape, width), np.float32
        )
    return arrays
