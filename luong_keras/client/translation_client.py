"""A client of a served translator, which needs no TensorFlow over REST."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np

from luong_keras.client.request_columns import (
    Lines,
    Option,
    option_column,
    text_column,
)
from luong_keras.client.rest_transport import RestTransport
from luong_keras.client.server_error import TranslationServerError
from luong_keras.inference.translation import (
    ScoredTranslation,
    Translation,
    scored_translation_of,
    translations_of,
)
from luong_keras.missing_package import missing_package

try:
    import tenacity
except ImportError as error:
    raise missing_package("tenacity", error, "serve") from error

Result = TypeVar("Result")


class TranslationClient:
    """Asks a translator in TensorFlow Serving.

    A method sends its lines in batches of like length; results come in the
    order of the lines. A request to a server that cannot be reached or is
    overloaded is repeated, later and later, which is safe: no request changes
    anything. Threads may share a client. Nothing is sent before the first
    call.

    A line is a `str`, or `bytes` in UTF-8. What is not UTF-8, and each lone
    surrogate of a `str`, is read as U+FFFD.

    Args:
        url: `http://HOST:PORT` or `https://…` of the REST interface, or
            `grpc://HOST:PORT`, which needs TensorFlow here as well.
        model: the name that the server has for the model.
        version: the number of a version, or its label as a `str`; the newest
            when None.
        timeout: seconds that a call may take, with all of its batches and
            repetitions.
        attempts: how often a batch is sent at most.
        batch_size: lines in a request.
        alignment_step: whose weights make the links of a translation, as the
            run's `decoding.alignment_step`.

    Raises:
        TranslationServerError: by every method, where the server does not
            answer in time, knows no such model, version or signature, refuses
            the request or answers something else.

    Example:
        >>> with TranslationClient("http://localhost:8501", "demo") as client:
        ...     client.translate([])
        []
        >>> TranslationClient("localhost:8501")
        Traceback (most recent call last):
        ValueError: Expected: `url` as http://HOST:PORT, https://HOST:PORT or
        grpc://HOST:PORT, without a path to a model. Received:
        'localhost:8501'.
    """

    def __init__(
        self,
        url: str = "http://localhost:8501",
        model: str = "translator",
        version: int | str | None = None,
        timeout: float = 30.0,
        attempts: int = 5,
        batch_size: int = 32,
        alignment_step: Literal["produces", "reads"] = "produces",
    ) -> None:
        if not 0 < timeout < float("inf") or min(attempts, batch_size) < 1:
            raise ValueError(
                "Expected: `timeout` in seconds, `attempts` and `batch_size` "
                f"of 1 or more. Received: {timeout}, {attempts} and "
                f"{batch_size}."
            )
        self.url, self.model = url, model
        self.timeout, self.attempts = timeout, attempts
        self.batch_size = batch_size
        self.alignment_step = alignment_step
        self._transport = _transport(url, model, version)

    def translate(self, lines: Lines, **options: Option) -> list[str]:
        """The best translation of every line.

        Args:
            lines: B sentences.
            **options: those of `nbest` except `n_best`.
        """
        if any(value is not None for value in options.values()):
            found = self.nbest(lines, n_best=1, **options)
            return [nbest[0].text for nbest in found]
        return self._predict(
            "serving_default",
            {"text": text_column(lines)},
            lambda arrays, row: arrays["translation"][row].decode(),
        )

    def nbest(
        self,
        lines: Lines,
        beam_size: Option = None,
        n_best: Option = None,
        length_penalty: Option = None,
        prefix: Option = None,
        replace_unknown: Option = None,
    ) -> list[list[Translation]]:
        """The n best translations of every line, the best first.

        An option is one value or one for each line. None leaves it as
        exported.

        Args:
            lines: B sentences.
            beam_size: hypotheses of the search, at most the exported maximum;
                0 for as many as exported.
            n_best: translations, at most as many as exported; 0 for all.
            length_penalty: exponent of the length that divides a score;
                negative for the exported one.
            prefix: words that the translation must begin with.
            replace_unknown: whether unknown words are replaced.

        Raises:
            ValueError: where an option is of another type or length.
        """
        columns = {"text": text_column(lines)}
        options = {
            "beam_size": beam_size,
            "n_best": n_best,
            "length_penalty": length_penalty,
            "prefix": prefix,
            "replace_unknown": replace_unknown,
        }
        result_of = partial(translations_of, step=self.alignment_step)
        if all(value is None for value in options.values()):
            return self._predict("translate", columns, result_of)
        for name, value in options.items():
            columns[name] = option_column(name, value, len(columns["text"]))
        return self._predict("translate_with_options", columns, result_of)

    def score(self, sources: Lines, targets: Lines) -> list[ScoredTranslation]:
        """What the model says of given translations.

        Args:
            sources: B sentences.
            targets: a translation of each.

        Raises:
            ValueError: where there are not as many of both.
        """
        source, target = (
            text_column(sources, "sources"),
            text_column(targets, "targets"),
        )
        if len(source) != len(target):
            raise ValueError(
                "Expected: as many targets as sources. Received: "
                f"{len(target)} and {len(source)}."
            )
        columns = {"source": source, "target": target}
        return self._predict("score", columns, scored_translation_of)

    def encode(self, lines: Lines) -> list[np.ndarray]:
        """The encoder's vectors of every line, (S, M) float32."""
        return self._predict(
            "encode",
            {"text": text_column(lines)},
            lambda arrays, row: arrays["memory"][row, : arrays["lengths"][row]],
        )

    def status(self) -> dict[int, str]:
        """Version -> its state; `"AVAILABLE"` where it is served."""
        deadline = time.monotonic() + self.timeout
        return self._ask("the status", self._transport.status, deadline)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _predict(
        self,
        signature: str,
        columns: dict[str, np.ndarray],
        result_of: Callable[[dict[str, np.ndarray], int], Result],
    ) -> list[Result]:
        """`result_of(arrays, row)` of every line."""
        deadline = time.monotonic() + self.timeout
        lengths = [len(text) for text in next(iter(columns.values()))]
        order = np.argsort(lengths, kind="stable")
        results: list[Any] = [None] * len(order)
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            batch = {name: column[places] for name, column in columns.items()}
            found = self._ask(
                f"an answer of signature {signature!r}",
                partial(self._results, signature, batch, result_of),
                deadline,
            )
            for place, result in zip(places, found, strict=True):
                results[place] = result
        return results

    def _results(self, signature, batch, result_of, timeout):
        """The results of one batch, in its order."""
        arrays = self._transport.predict(signature, batch, timeout)
        rows = len(next(iter(batch.values())))
        try:
            if any(len(array) != rows for array in arrays.values()):
                raise ValueError(f"not {rows} sentences in every output")
            return [result_of(arrays, row) for row in range(rows)]
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            raise TranslationServerError(repr(error), "MALFORMED") from error

    def _ask(
        self, what: str, request: Callable[[float], Result], deadline: float
    ) -> Result:
        """What `request(timeout)` returns, repeated where that may help."""

        def attempt():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TranslationServerError(
                    "no time is left", "DEADLINE_EXCEEDED"
                )
            return request(left)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: getattr(error, "code", None) == "UNAVAILABLE"
            ),
            wait=tenacity.wait_exponential(multiplier=0.5, max=8)
            + tenacity.wait_random(0, 0.5),
            stop=tenacity.stop_after_attempt(self.attempts)
            | tenacity.stop_before_delay(deadline - time.monotonic()),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except TranslationServerError as error:
            raise error.explained(
                f"{what} of model {self.model!r} at {self.url} within "
                f"{self.timeout} s",
                retrying.statistics["attempt_number"],
            ) from error


def _transport(url: str, model: str, version: int | str | None):
    parts = urlsplit(url)
    if parts.netloc and "/v1/models" not in parts.path:
        if parts.scheme in ("http", "https"):
            return RestTransport(url, model, version)
        if parts.scheme == "grpc":
            from luong_keras.client.grpc_transport import GrpcTransport

            return GrpcTransport(parts.netloc, model, version)
    raise ValueError(
        "Expected: `url` as http://HOST:PORT, https://HOST:PORT or "
        f"grpc://HOST:PORT, without a path to a model. Received: {url!r}."
    )
