"""A client of a served translator, which needs no TensorFlow over REST."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Self, Unpack

import numpy as np

from luong_keras.inference.search_options import (
    BeamSettings,
    Lines,
    NbestSettings,
    Option,
    SearchSettings,
)
from luong_keras.inference.translation import (
    ScoredTranslation,
    TranslatedText,
    Translation,
    TranslationScore,
)
from luong_keras.truncation import TruncationWarning as TruncationWarning
from luong_keras.truncation import warn_of
from luong_keras_client import background_loop, questions
from luong_keras_client.base_client import BaseClient
from luong_keras_client.contract import Contract
from luong_keras_client.line_stream import FinishedPart, LineStream
from luong_keras_client.served_translator import ServedTranslator


class TranslationClient(BaseClient):
    """Asks a translator in TensorFlow Serving.

    A method sends its lines in batches of like length, several at a time;
    results come in the order of the lines. A request to a server that cannot
    be reached or has too much to do is repeated, later and later, or when the
    server says; that is safe, for no request changes anything. Threads may
    share a client, and a program with an event loop may use it where it can
    wait; `AsyncTranslationClient` does not wait. Nothing is sent before the
    first call. A process that forks makes its clients afterwards.

    A line is a `str`, or `bytes` in UTF-8. What is not UTF-8, and each lone
    surrogate of a `str`, is read as U+FFFD.

    Args:
        url: `http://HOST:PORT` or `https://…` of the REST interface, or
            `grpc://HOST:PORT` or `grpcs://…`, which need TensorFlow here as
            well. A user and a password in it, `https://USER:PASSWORD@HOST`,
            are sent, and shown nowhere. To an address of this machine no
            proxy is asked; to others those of the environment.
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
        TranslationServerError: by every method, where the server does not
            answer in time, knows no such model, version or signature, refuses
            the request or answers something else. It has the results of the
            lines that were answered.
        TextTooLongError: likewise, where some texts are longer than the
            server reads.

    Example:
        >>> with TranslationClient("http://localhost:8501", "demo") as client:
        ...     client.translate([])
        []
        >>> TranslationClient("localhost:8501")
        Traceback (most recent call last):
        ValueError: Expected: `url` as http://HOST:PORT, https://HOST:PORT,
        grpc://HOST:PORT or grpcs://HOST:PORT, without a path to a model.
        Received: 'localhost:8501'.
    """

    def _made(self) -> None:
        closing = weakref.finalize(self, _close_later, self._translator)
        closing.atexit = False

    def translate(
        self, lines: Lines, **options: Unpack[SearchSettings]
    ) -> list[str]:
        """The best translation of every line.

        Warns with a `TruncationWarning` of lines that were cut.

        Args:
            lines: B sentences.
            **options: `beam_size`, hypotheses of the search, at most the
                exported maximum; `length_penalty`, the exponent of the length
                that divides a score; `prefix`, the text that the translation
                must begin with; `replace_unknown`, whether unknown words are
                replaced. Each is one value or one for each line; what is left
                out, or None, is as exported.

        Raises:
            ValueError: where an option is of another type or length.
        """
        found = self._answer(questions.translation(lines, options))
        warn_of((one.truncated for one in found), stacklevel=2)
        return [one.text for one in found]

    def translate_lines(
        self,
        lines: Iterable[str | bytes],
        **options: Unpack[SearchSettings],
    ) -> Iterator[str]:
        """The translations of any number of lines, as they come.

        It reads at most two times `batch_size` x `concurrency` lines
        ahead, and with a `concurrency` of 1 none: each batch is answered
        before the next line is read. Warns at the end of lines that were cut.

        Args:
            lines: sentences, such as those of an open file.
            **options: those of `translate`, one value each.

        Raises:
            TranslationServerError: after the translations before the line
                that has none.

        Example:
            >>> list(TranslationClient().translate_lines(iter([])))
            []
        """
        stream = LineStream(self._translator, lines, options)
        return self._lines(stream, lines)

    def nbest(
        self, lines: Lines, **options: Unpack[NbestSettings]
    ) -> list[list[TranslatedText]]:
        """The n best translations of every line, the best first.

        Warns with a `TruncationWarning` of lines that were cut.

        Args:
            lines: B sentences.
            **options: those of `translate`, and `n_best`: how many, at most
                as many as exported.
        """
        found = self._answer(questions.nbest(lines, options))
        cut = [any(one.truncated for one in nbest) for nbest in found]
        warn_of(cut, stacklevel=2)
        return found

    def align(
        self,
        lines: Lines,
        rank: Option = 0,
        **options: Unpack[BeamSettings],
    ) -> list[Translation]:
        """One translation of every line, with its words, weights and links.

        Args:
            lines: B sentences.
            rank: which one, 0 the best. Where the search found fewer, the
                translation is empty and has the score -1e30.
            **options: those of `translate`.
        """
        step = self._settings.alignment_step
        return self._answer(questions.alignment(lines, rank, options, step))

    def score(self, sources: Lines, targets: Lines) -> list[TranslationScore]:
        """How probable given translations are.

        Args:
            sources: B sentences.
            targets: a translation of each.

        Raises:
            ValueError: where there are not as many of both.
        """
        return self._answer(questions.score(sources, targets))

    def align_pairs(
        self, sources: Lines, targets: Lines
    ) -> list[ScoredTranslation]:
        """As `score`, with the attention weights.

        Args:
            sources: B sentences.
            targets: a translation of each.
        """
        return self._answer(questions.pair_alignment(sources, targets))

    def encode(self, lines: Lines) -> list[np.ndarray]:
        """The encoder's vectors of every line, (S, M) float32.

        Warns with a `TruncationWarning` of lines that were cut.
        """
        found = self._answer(questions.encoding(lines))
        warn_of((cut for _, cut in found), stacklevel=2)
        return [memory for memory, _ in found]

    def contract(self) -> Contract:
        """What the server takes; it is asked once, at the first call."""
        return background_loop.run(self._translator.contract())

    def status(self) -> dict[int, str]:
        """Version -> its state; `"AVAILABLE"` where it is served."""
        return background_loop.run(self._translator.status())

    def close(self) -> None:
        """Closes the connections; the client cannot be used then."""
        background_loop.run(self._translator.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answer(
        self, question: questions.Question[questions.Result]
    ) -> list[questions.Result]:
        return background_loop.run(self._translator.answer(question))

    def _lines(self, stream: LineStream, lines) -> Iterator[str]:
        waiting: deque[Future[FinishedPart]] = deque()
        try:
            # Read here and not in the loop, whose work would have to wait.
            for first, part in stream.parts(lines):
                work = stream.answer(first, part)
                waiting.append(background_loop.start(work))
                if len(waiting) == stream.parts_in_flight:
                    yield from _oldest(waiting).texts(stream.places)
            while waiting:
                yield from _oldest(waiting).texts(stream.places)
        finally:
            for future in waiting:
                future.cancel()
        stream.places.warn(stacklevel=2)


def _oldest(waiting: deque[Future[FinishedPart]]) -> FinishedPart:
    """Waits for it; where the wait is ended it is still there to cancel."""
    done = waiting[0].result()
    waiting.popleft()
    return done


def _close_later(translator: ServedTranslator) -> None:
    """Of a client that nobody has any more, and nobody closed."""
    if translator.is_connected:
        background_loop.start(translator.aclose())
