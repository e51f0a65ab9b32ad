"""The errors of a client, whatever it speaks to the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# TensorFlow Serving's batching_session.cc and batching_util.cc give the error
# of one request to all that share its batch. Ours have the right shapes, and
# the batch that they come into next time is another one.
OF_ANOTHER_REQUEST = (
    "from different tasks have different shapes",
    "One or more tasks does not conform to batch signature",
    "Tensor concat operation failed",
    "Got empty tensor in batch of non-empty tensors",
    "Only tensors with rank from 1 to 6 can be padded",
)
_SHARED_A_BATCH = (
    "The request shared a batch with one of another shape, each time; whoever "
    "sends those has to change them."
)
# The first pair whose first text stands in what the server said decides.
_ADVICE_BY_TEXT = (
    (
        "larger than max",
        "The server takes less at once than the export: pass a smaller "
        "`batch_size`.",
    ),
    *((text.lower(), _SHARED_A_BATCH) for text in OF_ANOTHER_REQUEST),
    (
        "certificate",
        "Check the certificate of the server; pass `ca_certificate` where it "
        "is signed by an authority of your own, and `client_certificate` "
        "where the server asks for one.",
    ),
    (
        "ssl",
        "Does the server speak TLS at this port? If not, write http:// or "
        "grpc://.",
    ),
    (
        "signature",
        "Export the run again with this version of luong_keras; "
        "`saved_model_cli show` lists what an export can be asked.",
    ),
)
_ADVICE = {
    "UNAVAILABLE": "Is the server running, and is this its address? REST has "
    "port 8501 and gRPC 8500, unless the server was told otherwise.",
    "RESOURCE_EXHAUSTED": "The server has more to do than it can: ask later, "
    "or for less at a time.",
    "DEADLINE_EXCEEDED": "Pass a larger `timeout` or `request_timeout`, or "
    "fewer lines, or see whether the server is busy or out of reach.",
    "INVALID_ARGUMENT": "Change the request accordingly.",
    "NOT_FOUND": "A server knows its models by the names, versions and labels "
    "it was started with (--model_name, MODEL_NAME or its models.config).",
    "UNAUTHENTICATED": "Pass `token`, set LUONG_KERAS_TOKEN, or write the "
    "user and the password into the address.",
    "PERMISSION_DENIED": "Whoever runs the server can allow it to the holder "
    "of this token.",
    "CONTRACT": "Export the run again with this version of luong_keras.",
    "MALFORMED": "Is this TensorFlow Serving, and the model an export of this "
    "version of luong_keras?",
    "HTTP_413": "Pass a smaller `batch_size`.",
}

# Exceptions that parsing a malformed response can raise.
UNREADABLE = (
    *(LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError),
)


def missing_package(
    name: str, error: ImportError, extra: str = ""
) -> ImportError:
    """The error that tells how to install a package that is not there."""
    return ImportError(
        f"This needs the package `{name}`, which could not be imported "
        f"({error}). Install it with `pip install luong-keras-client{extra}`.",
        name=name,
    )


class TranslationServerError(RuntimeError):
    """A server gave no answer, or not the one that was asked for.

    Attributes:
        code: `"UNAVAILABLE"`, `"DEADLINE_EXCEEDED"`, `"NOT_FOUND"`,
            `"INVALID_ARGUMENT"` or another of gRPC's; `"HTTP_418"` for a
            status that has no such name; `"MALFORMED"` for an answer that is
            not a translator's, `"CONTRACT"` for a translator of another
            contract, `"TEXT_TOO_LONG"` where that is all that was wrong.
        results: of a call for several lines, what was finished, None where
            there is nothing; None where nothing was begun.
        retry_after: the seconds that the server asked to wait, or None.
    """

    def __init__(
        self,
        message: str,
        code: str = "UNKNOWN",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        self.results: list[Any] | None = None

    def explained(self, expected: str, attempts: int) -> TranslationServerError:
        """The same error, with what was expected and what to do.

        Args:
            expected: what was asked for.
            attempts: how often.

        Returns:
            The error to raise.

        Example:
            >>> error = TranslationServerError("refused", "UNAVAILABLE")
            >>> print(error.explained("a translation", attempts=2))
            Expected: a translation. Received: UNAVAILABLE, refused (after 2
            attempts). Is the server running, and is this its address? REST
            has port 8501 and gRPC 8500, unless the server was told otherwise.
        """
        said = str(self).lower()
        by_text = (advice for text, advice in _ADVICE_BY_TEXT if text in said)
        advice = next(by_text, None) or _ADVICE.get(
            self.code, "The server's log may tell more."
        )
        tried = f" (after {attempts} attempts)" if attempts > 1 else ""
        if self.retry_after is not None:
            tried += f" (to be asked again in {self.retry_after:.0f} s)"
        return TranslationServerError(
            f"Expected: {expected}. Received: {self.code}, "
            f"{str(self).rstrip('.')}{tried}. {advice}",
            self.code,
            self.retry_after,
        )


class TextTooLongError(TranslationServerError, ValueError):
    """Some lines have more bytes than the server reads.

    The others were answered: see `results`.

    Attributes:
        places: of the lines that are too long.
        size: the bytes of the first of them.
        limit: the bytes that the server reads.

    Example:
        >>> error = TextTooLongError([3, 7], 70_000, 65_536)
        >>> print(error)
        Expected: texts of at most 65536 bytes. Received: 70000 bytes at place
        3, the first of 2 that are too long. Split these texts.
        >>> error.code, error.places
        ('TEXT_TOO_LONG', [3, 7])
    """

    def __init__(self, places: Sequence[int], size: int, limit: int) -> None:
        more = len(places) > 1
        first = f", the first of {len(places)} that are too long" * more
        super().__init__(
            f"Expected: texts of at most {limit} bytes. Received: {size} "
            f"bytes at place {places[0]}{first}. Split "
            f"{'these texts' if more else 'this text'}.",
            "TEXT_TOO_LONG",
        )
        self.places, self.size, self.limit = list(places), size, limit

    def __reduce__(self) -> tuple[Any, ...]:
        """For a pool of processes, which sends errors from one to another."""
        made_of = self.places, self.size, self.limit
        return type(self), made_of, vars(self)
