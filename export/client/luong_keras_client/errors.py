"""Errors and warnings, common to REST and gRPC."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

# TensorFlow Serving sends the error of one request to all requests of its
# batch. The client's requests have the right shapes: a retry may succeed.
OF_ANOTHER_REQUEST = (
    "from different tasks have different shapes",
    "One or more tasks does not conform to batch signature",
    "Tensor concat operation failed",
    "Got empty tensor in batch of non-empty tensors",
    "Only tensors with rank from 1 to 6 can be padded",
)
_WITHOUT_TLS = (
    "Does the server speak TLS at this port? If not, write http:// or grpc://."
)
# The first key applies that is in the server's message or is the code.
_ADVICE = {
    "larger than max": "The server, or this client, limits the size of "
    "messages: pass a smaller `batch_size`.",
    "redirection to": "The client follows none. If this is the server's new "
    "address, pass its part before /v1/models as `url`.",
    **dict.fromkeys(
        map(str.lower, OF_ANOTHER_REQUEST),
        "In every attempt the server batched this request with one of another "
        "shape; the sender of that one must correct it.",
    ),
    "wrong_version_number": _WITHOUT_TLS,
    "certificate": "Check the certificate of the server; pass "
    "`ca_certificate` where an authority of your own signed it, and "
    "`client_certificate` where the server asks for one.",
    "ssl": _WITHOUT_TLS,
    "signature": "Export the run again with this version of luong_keras; "
    "`saved_model_cli show` lists the signatures of an export.",
    "UNAVAILABLE": "Is the server running, and is this its address? REST has "
    "port 8501 and gRPC 8500, unless the server was started otherwise.",
    "RESOURCE_EXHAUSTED": "The server is overloaded: retry later, or send "
    "fewer lines per request.",
    "DEADLINE_EXCEEDED": "Pass a larger `timeout` or `request_timeout`, or "
    "fewer lines, or see whether the server is busy or out of reach.",
    "INVALID_ARGUMENT": "Change the request accordingly.",
    "NOT_FOUND": "A server knows its models by the names, versions and labels "
    "it was started with (--model_name, MODEL_NAME or its models.config).",
    "UNAUTHENTICATED": "Pass `token`, set LUONG_KERAS_TOKEN, or write the "
    "user and the password into the address.",
    "PERMISSION_DENIED": "The operator of the server can give this token "
    "access.",
    "CONTRACT": "Export the run again with this version of luong_keras.",
    "MALFORMED": "Is this TensorFlow Serving, and the model an export of this "
    "version of luong_keras?",
    "HTTP_413": "Pass a smaller `batch_size`.",
}
# Errors from reading a malformed response.
UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def argument_error(
    expected: str, received: object, kind: Any = ValueError
) -> Any:
    """Return the error for a wrong argument."""
    return kind(f"Expected: {expected}. Received: {received}.")


class TranslationServerError(RuntimeError):
    """A missing or unexpected response of a server.

    `code` is a gRPC code, such as `"UNAVAILABLE"` or `"NOT_FOUND"`, or
    `"HTTP_418"` for a status without one; `"MALFORMED"` for a response that
    is not a translator's, `"CONTRACT"` for another contract, and
    `"TEXT_TOO_LONG"` if nothing else was wrong. `results` has the result of
    each line, None for a line without one; it is None if no line was sent.
    `retry_after` is the wait in seconds that the server asked for, infinite if
    it forbids a retry, or None.
    """

    def __init__(
        self, message: str, code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.retry_after = code, retry_after
        self.results: list[Any] | None = None

    def explained(
        self, expected: str, attempts: int, hide: Callable[[str], str] = str
    ) -> TranslationServerError:
        """Return the same error with the request, the attempts and advice."""
        text = hide(str(self))[:800].rstrip(".")
        keys = (x for x in _ADVICE if x in text.lower() or x == self.code)
        advice = _ADVICE.get(next(keys, ""), "The server's log may tell more.")
        text += f" (after {attempts} attempts)" if attempts > 1 else ""
        if self.retry_after == float("inf"):
            text += " (the server forbids a retry)"
        elif self.retry_after is not None:
            seconds = f"{self.retry_after:g} s"
            text += f" (the server asks for a retry after {seconds})"
        message = f"Expected: {expected}. Received: {self.code}, {text}. "
        return TranslationServerError(
            message + advice, self.code, self.retry_after
        )


class TextTooLongError(TranslationServerError, ValueError):
    """Lines, at `places`, with more bytes than the server reads.

    `size` is the size of the first one in bytes, `limit` the largest size that
    the server reads. `results` has the results of the other lines.
    """

    def __init__(self, places: Sequence[int], size: int, limit: int) -> None:
        which, first = "this text", ""
        if len(places) > 1:
            which = "these texts"
            first = f", the first of {len(places)} that are too long"
        received = f"{size} bytes at place {places[0]}{first}. Split {which}"
        error = argument_error(f"texts of at most {limit} bytes", received)
        super().__init__(str(error), "TEXT_TOO_LONG")
        self.places, self.size, self.limit = list(places), size, limit

    def __reduce__(self) -> tuple[Any, ...]:  # For pickle.
        return type(self), (self.places, self.size, self.limit), vars(self)


class TruncationWarning(UserWarning):
    """Warning that some lines, or their translations, were cut."""

    places: TruncatedPlaces


class TruncatedPlaces:
    """Number of lines that were cut, and the first ten places."""

    def __init__(self) -> None:
        self.count, self.first = 0, list[int]()

    def add(self, place: int, truncated: bool) -> None:
        self.count += truncated
        if truncated and len(self.first) < 10:
            self.first.append(place)

    def message(self, start: int = 0) -> str:
        """Return the report; the first line has the number `start`."""
        places = ", ".join(str(start + place) for place in self.first)
        places += ", …" * (self.count > len(self.first))
        return (
            "Expected: sentences and prefixes of at most `max_source_tokens` "
            "of the contract, and 8 phrases of at most 16 tokens, the required "
            "ones of known words, that fit into the translation. "
            f"Received: others in {self.count} of the lines "
            f"({'number' if start else 'place'} {places}), translated from "
            "their beginning only, or without the phrase, or with a "
            "translation cut at its maximum length, or without any "
            "translation. Split these sentences, or change their options."
        )

    def warn(self, stacklevel: int) -> None:
        if self.count:
            warning = TruncationWarning(self.message())
            warning.places = self
            warnings.warn(warning, stacklevel=stacklevel + 1)
