"""Requests: a signature, its inputs, and the reader of its response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np

from luong_keras_client import responses
from luong_keras_client.errors import argument_error

Option = Any  # One value, or one per line.
Lines = Iterable[str | bytes]
_TEXT, _MAX = (object, "", None), 2**31 - 1
# Option -> its type, the value that keeps the exported one, and the largest
# value, to which an export would reduce others. The first are for a beam.
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
_ALL = list(_OPTIONS)[:-1]
_BEAM = _ALL[:5]


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
    text, read = _text_column(lines), responses.text_of
    signature, columns = "serving_default", {"text": text}
    if any(value is not None for value in options.values()):
        signature, columns = _choose_signature(text, {**options, "n_best": 1})
        read = responses.best_text_of
    return Request(
        signature,
        columns,
        read,
        final=lambda result: result.text,
        cut=_is_cut,
        first=first,
    )


def nbest(lines: Lines, options: Mapping[str, Option]) -> Request:
    """Request several translations of each line."""
    _check_names("nbest", options, _ALL)
    signature, columns = "translate", {"text": _text_column(lines)}
    if any(value is not None for value in options.values()):
        signature, columns = _choose_signature(columns["text"], options)
    return Request(
        signature,
        columns,
        responses.texts_of,
        cut=lambda nbest: not nbest or any(map(_is_cut, nbest)),
    )


def alignment(
    lines: Lines, options: Mapping[str, Option], step: str
) -> Request:
    """Request the words and weights of one translation of each line."""
    names = ["rank", *(x for x in _BEAM if x != "n_best")]
    _check_names("align", options, names)
    columns = _add_options(_text_column(lines), options, names)
    read = partial(responses.translation_of, step)
    return Request("align", columns, read, cut=lambda result: result.truncated)


def _is_cut(result: responses.TranslatedText) -> bool:
    """Test whether a line was cut, or has no translation."""
    return result.truncated or result.score <= responses.ABSENT


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
    return Request(
        "encode",
        {"text": _text_column(lines)},
        responses.memory_of,
        final=lambda result: result[0],
        cut=lambda result: result[1],
    )


def check_stream(lines: Any, options: Mapping[str, Any]) -> None:
    """Refuse options per line, because the number of lines is unknown."""
    _check_is_list(lines, "lines")
    _check_names("translate_lines", options, [x for x in _ALL if x != "n_best"])
    for name, value in options.items():
        if np.ndim(value) != 0:
            raise argument_error(
                f"one value of `{name}` for all lines", repr(value)
            )


def _choose_signature(text, options):
    """Return the smallest signature with these options, and its columns."""
    if any(options[name] is not None for name in {*options} - {*_BEAM}):
        return "search", _add_options(text, options, _ALL)
    return "translate_with_options", _add_options(text, options, _BEAM)


def _add_options(text, options, names) -> dict[str, np.ndarray]:
    columns = {
        name: _option_column(name, options.get(name), len(text))
        for name in names
    }
    return {"text": text, **columns}


def _check_names(method, options, names) -> None:
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
