"""Requests: a signature, its inputs, its batches, and their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np

from luong_keras_client import responses
from luong_keras_client.errors import (
    TextTooLongError,
    TranslationServerError,
    TruncatedPlaces,
    argument_error,
)

Option = Any  # One value, or one per line.
Lines = Iterable[str | bytes]
_TEXT, _MAX = (object, "", None), 2**31 - 1
# Option -> its type, the value that keeps the exported one, and the largest
# value, to which an export would reduce others.
_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "beam_size": (np.int32, 0, _MAX),
    "n_best": (np.int32, 0, _MAX),
    "length_penalty": (np.float32, -1, 2),
    "prefix": _TEXT,
    "replace_unknown": (np.int32, -1, 1),
    "coverage_penalty": (np.float32, -1, 10),
    "no_repeat_ngram": (np.int32, -1, 8),
    "temperature": (np.float32, -1, 10),
    "top_k": (np.int32, -1, _MAX),
    "top_p": (np.float32, -1, 1),
    "seed": (np.int32, -1, _MAX),
    "required": _TEXT,
    "forbidden": _TEXT,
    "rank": (np.int32, 0, _MAX),
}


class BeamSettings(TypedDict, total=False):
    """Options of a beam search; as exported if absent or None."""

    beam_size: Option
    length_penalty: Option
    prefix: Option
    replace_unknown: Option


class SearchSettings(BeamSettings, total=False):
    """Options of any search."""

    coverage_penalty: Option
    no_repeat_ngram: Option
    temperature: Option
    top_k: Option
    top_p: Option
    seed: Option
    required: Option
    forbidden: Option


class NbestSettings(SearchSettings, total=False):
    """Options of any search, and the number of translations."""

    n_best: Option


_BEAM = [*BeamSettings.__annotations__, "n_best"]


@dataclass(frozen=True)
class Request:
    """A signature, the values of its inputs, and a reader of response rows.

    The first line has the place `first` among those of the caller.
    """

    signature: str
    columns: dict[str, np.ndarray]
    read: Callable[[responses.Arrays, int], responses.Result]
    first: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def size(self, place: int) -> int:
        """Return the number of bytes of the longest text of a line."""
        texts = [x[place] for x in self.columns.values() if x.dtype == object]
        return max(len(x.encode() if type(x) is str else x) for x in texts)


def translation(
    lines: Lines, options: Mapping[str, Option], first: int = 0
) -> Request:
    """Request the best translation of each line."""
    _check_names("translate", options, SearchSettings)
    text = _text_column(lines)
    signature, columns = "serving_default", {"text": text}
    if any(value is not None for value in options.values()):
        signature, columns = _choose_signature(text, {**options, "n_best": 1})
    return Request(signature, columns, responses.text_of, first)


def nbest(lines: Lines, options: Mapping[str, Option]) -> Request:
    """Request several translations of each line."""
    _check_names("nbest", options, NbestSettings)
    signature, columns = _choose_signature(_text_column(lines), options)
    return Request(signature, columns, responses.texts_of)


def alignment(
    lines: Lines, rank: Option, options: Mapping[str, Option], step: str
) -> Request:
    """Request the words and weights of one translation of each line."""
    _check_names("align", options, BeamSettings)
    names = ["rank", *BeamSettings.__annotations__]
    options = {"rank": rank, **options}
    columns = _add_options(_text_column(lines), options, names)
    return Request("align", columns, partial(responses.translation_of, step))


def pairs(signature: str, sources: Lines, targets: Lines) -> Request:
    """Request scores of given translations, by `score` or `align_pair`."""
    source = _text_column(sources, "sources")
    target = _text_column(targets, "targets")
    if len(source) != len(target):
        counts = f"{len(target)} and {len(source)}"
        raise argument_error("as many targets as sources", counts)
    without_weights = signature == "score"
    read = responses.score_of if without_weights else responses.scored_of
    return Request(signature, {"source": source, "target": target}, read)


def encoding(lines: Lines) -> Request:
    """Request the encoder's vectors of each line."""
    columns = {"text": _text_column(lines)}
    return Request("encode", columns, responses.memory_of)


def check_stream(lines: Any, options: Mapping[str, Any]) -> None:
    """Refuse options per line, because the number of lines is unknown."""
    _check_is_list(lines, "lines")
    _check_names("translate_lines", options, SearchSettings)
    for name, value in options.items():
        if np.ndim(value) != 0:
            raise argument_error(
                f"one value of `{name}` for all lines", repr(value)
            )


def _choose_signature(text, options):
    """Return the smallest signature with these options, and its columns."""
    given = {name for name, value in options.items() if value is not None}
    if not given:
        return "translate", {"text": text}
    if given <= {*_BEAM}:
        return "translate_with_options", _add_options(text, options, _BEAM)
    return "search", _add_options(text, options, NbestSettings.__annotations__)


def _add_options(text, options, names) -> dict[str, np.ndarray]:
    columns = {
        name: _option_column(name, options.get(name), len(text))
        for name in names
    }
    return {"text": text, **columns}


def _check_names(method, options, settings) -> None:
    names = settings.__annotations__
    for name in {*options} - {*names}:
        expected = f"options of `{method}`, {', '.join(names)}"
        raise argument_error(expected, name, TypeError)


def check_text(line: object, name: str, place: int) -> None:
    """Refuse an object that is no text, with its place."""
    if not isinstance(line, str | bytes):
        received = f"{line!r} at place {place}"
        raise argument_error(f"`{name}` of str or bytes", received, TypeError)


def _text_column(lines: Any, name: str = "lines") -> np.ndarray:
    """Return (B,) objects: `str` without lone surrogates, and `bytes`."""
    _check_is_list(lines, name)
    texts = np.array([*lines, None], object)[:-1]
    for place, line in enumerate(texts):
        check_text(line, name, place)
        if isinstance(line, str):
            line = line.encode("utf-16", "surrogatepass")
            texts[place] = line.decode("utf-16", "replace")
    return texts


def _check_is_list(lines: object, name: str) -> None:
    readers = ("__iter__", "__getitem__", "__aiter__")
    is_one = not any(hasattr(lines, reader) for reader in readers)
    is_one = is_one or getattr(lines, "shape", None) == ()
    if isinstance(lines, str | bytes) or is_one:
        received = (
            f"the one {type(lines).__name__} {lines!r}. Put it into a list"
        )
        raise argument_error(
            f"`{name}`, a list of sentences", received, TypeError
        )


def _option_column(name: str, value: Option, count: int) -> np.ndarray:
    """Return the (B,) values of an option."""
    kind, unset, high = _OPTIONS[name]
    fits = True
    try:
        values = np.asarray(value, object)
        values = np.where(values == np.array(None), unset, values)
        array = values.astype(kind)
        if kind is not object and values.size:
            values = np.asarray(values.tolist())
            # The type may change only the last digits.
            fits = values.dtype.kind in "biuf" and np.isfinite(array).all()
            fits = fits and np.allclose(array, values, rtol=1e-6)
            inside = (array >= 0) & (array <= high) | (array == unset)
            if name == "top_p":
                inside &= array != 0
            fits = fits and inside.all()
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits or array.shape not in ((), (count,)):
        expected = f"`{name}` as one value or {count}, one for each line, of "
        numbers = f"{np.dtype(kind)} from 0 to {high}"
        kind = "str" if kind is object else numbers
        raise argument_error(f"{expected}type {kind}", repr(value))
    array = np.broadcast_to(array, (count,))
    return _text_column(array, name) if kind is object else array


class Batches:
    """Batches of lines of similar length, which workers share.

    After a failure no more batches are sent, but requests in flight keep
    their results. If a server refuses rows because it joined too many, they
    are sent again in smaller batches.
    """

    def __init__(
        self,
        request: Request,
        contract: responses.Contract,
        size: int,
        attempts: int,
        deadline: float,
        slots: Any,
    ) -> None:
        self.request, self.contract = request, contract
        self.deadline, self.slots = deadline, slots
        self.failure: BaseException | None = None
        self.following: Batches | None = None
        self._attempts = attempts
        self._results: list[Any] = [None] * len(request)
        self._too_long: list[int] = []
        lengths = [len(x) for x in next(iter(request.columns.values()))]
        order = np.argsort(lengths, kind="stable")
        size = min(size, contract.max_rows)
        starts = range(0, len(order), size)
        # Places, and how often a server refused them as too many rows.
        self.waiting = deque((order[x : x + size], 0) for x in starts)

    def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
        with suppress(IndexError):  # No batch is left.
            while self.failure is None:
                yield self.waiting.popleft()

    def fail(self, error: BaseException) -> None:
        """Send no more batches, nor those of the following lines."""
        self.failure = self.failure or error
        if self.following:
            self.following.fail(error)

    def take(self, places: np.ndarray, attempt: int, rows: Any) -> None:
        """Store the results of a request, and queue refused rows again."""
        refused = []
        for place, (status, result) in zip(places, rows, strict=True):
            self._results[place] = result
            if status == b"TEXT_TOO_LONG":
                self._too_long.append(int(place))
            elif status != b"OK":
                refused.append(place)
        if refused and attempt + 1 == self._attempts:
            raise TranslationServerError(
                f"Expected: requests of at most {len(places)} rows to be "
                "translated. Received: TOO_MANY_ROWS in every attempt. The "
                "server joins more rows than the export takes: lower "
                "max_batch_size in its batching.config to `max_rows` of the "
                "contract, or retry later.",
                "RESOURCE_EXHAUSTED",
            )
        size = max(1, len(places) // 2)
        for start in range(0, len(refused), size):
            part = np.array(refused[start : start + size])
            self.waiting.append((part, attempt + 1))

    def results(self, places: TruncatedPlaces) -> Iterator[Any]:
        """Yield results up to the first failed line, then raise its error."""
        request, error = self.request, self.failure
        if error is None and self._too_long:
            long = sorted(self._too_long)
            size, limit = request.size(long[0]), self.contract.max_text_bytes
            long = [request.first + place for place in long]
            error = TextTooLongError(long, size, limit)
        for place, found in enumerate(self._results, request.first):
            if found is None:
                break
            result, is_cut = found
            places.add(place, is_cut)
            yield result
        if isinstance(error, TranslationServerError):
            error.results = [found and found[0] for found in self._results]
        if error is not None:
            raise error
