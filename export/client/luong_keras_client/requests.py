"""Requests: a signature, its inputs, and the reader of its response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np

from luong_keras_client import responses
from luong_keras_client.errors import wrong

Option = Any  # One value, or one per line.
Lines = Iterable[str | bytes]
_INT, _FLOAT, _TEXT = (np.int32, -1), (np.float32, -1), (object, "")
# Option -> its type, and the value that keeps the exported one. The first
# options are for a beam.
_OPTIONS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(["beam_size", "n_best"], (np.int32, 0)),
    **{"length_penalty": _FLOAT, "prefix": _TEXT, "replace_unknown": _INT},
    **{"coverage_penalty": _FLOAT, "no_repeat_ngram": _INT},
    **{"temperature": _FLOAT, "top_k": _INT, "top_p": _FLOAT, "seed": _INT},
    **dict.fromkeys(["required", "forbidden"], _TEXT),
    "rank": (np.int32, 0),
}
_ALL = list(_OPTIONS)[:-1]
_OF_A_BEAM = _ALL[:5]


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


@dataclass(frozen=True)
class Request:
    """A signature, the values of its inputs, and a reader of response rows.

    `final` turns a row into the user's result; `cut` tests whether to warn.
    """

    signature: str
    columns: dict[str, np.ndarray]
    read: Callable[[responses.Arrays, int], Any]
    final: Callable[[Any], Any] = lambda result: result
    cut: Callable[[Any], bool] = lambda result: False
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
    _check_names("translate", options, [x for x in _ALL if x != "n_best"])
    text, read = _texts(lines, first=first), responses.text_of
    signature, columns = "serving_default", {"text": text}
    if any(value is not None for value in options.values()):
        signature, columns = _searched(text, {**options, "n_best": 1})
        read = responses.best_text_of
    result = lambda one: one.text, lambda one: one.truncated  # noqa: E731
    return Request(signature, columns, read, *result, first)


def nbest(lines: Lines, options: Mapping[str, Option]) -> Request:
    """Request several translations of each line."""
    _check_names("nbest", options, _ALL)
    signature, columns = "translate", {"text": _texts(lines)}
    if any(value is not None for value in options.values()):
        signature, columns = _searched(columns["text"], options)
    return Request(
        *(signature, columns, responses.texts_of),
        cut=lambda nbest: any(one.truncated for one in nbest),
    )


def alignment(
    lines: Lines, options: Mapping[str, Option], step: str
) -> Request:
    """Request the words and weights of one translation of each line."""
    names = ["rank", *(x for x in _OF_A_BEAM if x != "n_best")]
    _check_names("align", options, names)
    columns = _with_options(_texts(lines), options, names)
    read = partial(responses.translation_of, step)
    return Request("align", columns, read)


def pairs(signature: str, sources: Lines, targets: Lines) -> Request:
    """Request scores of given translations, by `score` or `align_pair`."""
    source, target = _texts(sources, "sources"), _texts(targets, "targets")
    if len(source) != len(target):
        counts = f"{len(target)} and {len(source)}"
        raise wrong("as many targets as sources", counts)
    of_score = signature == "score"
    read = responses.score_of if of_score else responses.scored_of
    return Request(signature, {"source": source, "target": target}, read)


def encoding(lines: Lines) -> Request:
    """Request the encoder's vectors of each line."""
    columns, result = {"text": _texts(lines)}, (lambda x: x[0], lambda x: x[1])
    return Request("encode", columns, responses.memory_of, *result)


def check_stream(lines: Any, options: Mapping[str, Any]) -> None:
    """Refuse options per line, because the number of lines is unknown."""
    _refuse_one_line(lines, "lines")
    _check_names("translate_lines", options, [x for x in _ALL if x != "n_best"])
    for name, value in options.items():
        if np.ndim(value) != 0:
            raise wrong(f"one value of `{name}` for all lines", repr(value))


def _searched(text, options):
    """Return the smallest signature with these options, and its columns."""
    if any(options[name] is not None for name in {*options} - {*_OF_A_BEAM}):
        return "search", _with_options(text, options, _ALL)
    columns = _with_options(text, options, _OF_A_BEAM)
    return "translate_with_options", columns


def _with_options(text, options, names) -> dict[str, np.ndarray]:
    given = {x: _column(x, options.get(x), len(text)) for x in names}
    return {"text": text, **given}


def _check_names(method, options, names) -> None:
    for name in {*options} - {*names}:
        expected = f"options of `{method}`, {', '.join(names)}"
        raise wrong(expected, name, TypeError)


def _texts(lines: Any, name: str = "lines", first: int = 0) -> np.ndarray:
    """Return (B,) objects: `str` without lone surrogates, and `bytes`."""
    _refuse_one_line(lines, name)
    texts = np.array([*lines, None], object)[:-1]
    for place, line in enumerate(texts):
        if isinstance(line, str):
            line = line.encode("utf-16", "surrogatepass")
            texts[place] = line.decode("utf-16", "replace")
        elif not isinstance(line, bytes):
            received = f"{line!r} at place {first + place}"
            raise wrong(f"`{name}` of str or bytes", received, TypeError)
    return texts


def _refuse_one_line(lines: object, name: str) -> None:
    if isinstance(lines, str | bytes):
        received = f"the one sentence {lines!r}. Put it into a list"
        raise wrong(f"`{name}`, a list of sentences", received, TypeError)


def _column(name: str, value: Option, count: int) -> np.ndarray:
    """Return the (B,) values of an option."""
    kind, unset = _OPTIONS[name]
    value, fits = unset if value is None else value, True
    try:
        given = np.asarray(value, object if kind is object else None)
        array = given.astype(kind)
        if kind is not object and given.size:
            # The type may change only the last digits.
            fits = given.dtype.kind in "biuf" and np.isfinite(array).all()
            fits = fits and np.allclose(array, given, rtol=1e-6)
    except (ValueError, OverflowError):
        fits = False
    if not fits or array.shape not in ((), (count,)):
        expected = f"`{name}` as one value or {count}, one for each line, of "
        raise wrong(f"{expected}type {np.dtype(kind)}", repr(value))
    array = np.broadcast_to(array, (count,))
    return _texts(array, name) if kind is object else array
