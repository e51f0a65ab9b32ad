"""The error of a client, whatever it speaks to the server."""

from __future__ import annotations

_ADVICE = {
    "UNAVAILABLE": "Is the server running, and is this its address? REST has "
    "port 8501 and gRPC 8500, unless the server was told otherwise.",
    "DEADLINE_EXCEEDED": "Pass a larger `timeout` or fewer lines, or see "
    "whether the server is busy or out of reach.",
    "INVALID_ARGUMENT": "Change the request accordingly.",
    "NOT_FOUND": "A server knows its models by the names and versions it was "
    "started with (--model_name or MODEL_NAME).",
    "UNAUTHENTICATED": "Check the certificate of the server, and whether its "
    "address begins with https.",
    "MALFORMED": "Is this TensorFlow Serving, and the model an export of this "
    "version of luong_keras?",
}


class TranslationServerError(RuntimeError):
    """A server gave no answer, or not the one that was asked for.

    Attributes:
        code: `"UNAVAILABLE"`, `"DEADLINE_EXCEEDED"`, `"NOT_FOUND"`,
            `"INVALID_ARGUMENT"` or another of gRPC's; `"HTTP_418"` for a
            status that has no such name; `"MALFORMED"` for an answer that is
            not a translator's.
    """

    def __init__(self, message: str, code: str = "UNKNOWN") -> None:
        super().__init__(message)
        self.code = code

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
        advice = _ADVICE.get(self.code, "The server's log may tell more.")
        if "signature" in str(self).lower():
            advice = (
                "Export the model again with this version of luong_keras; "
                "`saved_model_cli show` lists what an export can be asked."
            )
        tried = f" (after {attempts} attempts)" if attempts > 1 else ""
        return TranslationServerError(
            f"Expected: {expected}. Received: {self.code}, "
            f"{str(self).rstrip('.')}{tried}. {advice}",
            self.code,
        )
