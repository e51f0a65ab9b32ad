"""What a client asks: a signature, its inputs, and how to read an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np

from luong_keras_client import responses
from luong_keras_client.errors import wrong

Result = TypeVar("Result")
Option = Any  # One value, or one for each line.
Lines = Iterable[str | bytes]
# Option -> what leaves it as exported, of its type.
_UNSET: dict[str, Any] = {
    "beam_size": np.int32(0),
    "n_best": np.int32(0),
    "length_penalty": np.float32(-1),
    "prefix": "",
    "replace_unknown": np.int32(-1),
    "coverage_penalty": np.float32(-1),
    "no_repeat_ngram": np.int32(-1),
    "temperature": np.float32(-1),
    "top_k": np.int32(-1),
    "top_p": np.float32(-1),
    "seed": np.int32(-1),
    "required": "",
    "forbidden": "",
    "rank": np.int32(0),
}
_ALL = list(_UNSET)[:-1]
_OF_A_BEAM = _ALL[:5]


class BeamSettings(TypedDict, total=False):
    """What may be chosen of a beam; what is left out, or None, is as it is."""

    beam_size: Option
    length_penalty: Option
    prefix: Option
    replace_unknown: Option


class SearchSettings(BeamSettings, total=False):
    """What may be chosen of any search."""

    coverage_penalty: Option
    no_repeat_ngram: Option
    temperature: Option
    top_k: Option
    top_p: Option
    seed: Option
    required: Option
    forbidden: Option


class NbestSettings(SearchSettings, total=False):
    """Those of the search, and how many translations are wanted."""

    n_best: Option


@dataclass(frozen=True)
class Question(Generic[Result]):
    """What is asked of some lines.

    `columns` are the values of each input, `read` has the result of a row;
    `final` makes of it what the user gets, `cut` says whether to warn of it.
    """

    signature: str
    columns: dict[str, np.ndarray]
    read: Callable[[responses.Arrays, int], Any]
    final: Callable[[Any], Result]
    cut: Callable[[Any], bool] = lambda result: False
    first: int = 0

    def __len__(self) -> int:
        """The number of lines."""
        return len(next(iter(self.columns.values())))

    def size(self, place: int) -> int:
        """The bytes of the longest text of a line."""
        texts = [x[place] for x in self.columns.values() if x.dtype == object]
        return max(len(x.encode() if type(x) is str else x) for x in texts)


def translation(
    lines: Lines, options: Mapping[str, Option], first: int = 0
) -> Question[str]:
    """Asks for the best translation of every line."""
    text = _texts(lines, first=first)
    _check_names("translate", options, [x for x in _ALL if x != "n_best"])
    signature, columns = "serving_default", {"text": text}
    read: Any = responses.text_of
    if any(value is not None for value in options.values()):
        signature, columns = _searched(text, {**options, "n_best": 1})
        read = _best
    return Question(
        signature, columns, read, lambda x: x.text, lambda x: x.truncated, first
    )


def nbest(
    lines: Lines, options: Mapping[str, Option]
) -> Question[list[responses.TranslatedText]]:
    """Asks for several translations of every line."""
    text = _texts(lines)
    _check_names("nbest", options, _ALL)
    signature, columns = "translate", {"text": text}
    if any(value is not None for value in options.values()):
        signature, columns = _searched(text, options)
    return Question(
        *(signature, columns, responses.texts_of, _same),
        lambda nbest: any(one.truncated for one in nbest),
    )


def alignment(
    lines: Lines, options: Mapping[str, Option], step: str
) -> Question[responses.Translation]:
    """Asks for the words and weights of one translation of every line."""
    names = ["rank", *(x for x in _OF_A_BEAM if x != "n_best")]
    _check_names("align", options, names)
    columns = _with_options(_texts(lines), options, names)
    read = partial(responses.translation_of, step)
    return Question("align", columns, read, _same)


def pairs(signature: str, sources: Lines, targets: Lines) -> Question[Any]:
    """Asks about given translations, for `score` or `align_pair`."""
    source, target = _texts(sources, "sources"), _texts(targets, "targets")
    if len(source) != len(target):
        received = f"{len(target)} and {len(source)}"
        raise wrong("as many targets as sources", received)
    columns = {"source": source, "target": target}
    of_score = signature == "score"
    read = responses.score_of if of_score else responses.scored_of
    return Question(signature, columns, read, _same)


def encoding(lines: Lines) -> Question[np.ndarray]:
    """Asks for the encoder's vectors of every line."""
    columns = {"text": _texts(lines)}
    return Question(
        *("encode", columns, responses.memory_of, lambda found: found[0]),
        lambda found: found[1],
    )


def check_stream(lines: object, options: Mapping[str, Any]) -> None:
    """Refuses an option for each line, where nobody knows how many come."""
    _refuse_one_line(lines)
    _check_names("translate_lines", options, [x for x in _ALL if x != "n_best"])
    for name, value in options.items():
        if value is not None and np.ndim(value) != 0:
            raise wrong(f"one value of `{name}` for all lines", repr(value))


def _same(result: Any) -> Any:
    return result


def _best(arrays: responses.Arrays, row: int) -> responses.TranslatedText:
    return responses.texts_of(arrays, row)[0]


def _searched(text, options) -> tuple[str, dict[str, np.ndarray]]:
    """The smallest signature that takes these options, and its columns."""
    given = {name for name in options if options[name] is not None}
    if given <= set(_OF_A_BEAM):
        names = _OF_A_BEAM
        return "translate_with_options", _with_options(text, options, names)
    return "search", _with_options(text, options, _ALL)


def _with_options(text, options, names) -> dict[str, np.ndarray]:
    return {"text": text} | {
        name: _option_column(name, options.get(name), len(text))
        for name in names
    }


def _check_names(method, options, names) -> None:
    for name in options:
        if name not in names:
            error = wrong(f"options of `{method}`, {', '.join(names)}", name)
            raise TypeError(str(error))


def _texts(lines: Lines, name: str = "lines", first: int = 0) -> np.ndarray:
    """(B,) objects: `str` without lone surrogates, and `bytes`."""
    _refuse_one_line(lines, name)
    texts = np.array([*lines, None], object)[:-1]
    for place, line in enumerate(texts, first):
        if not isinstance(line, str | bytes):
            received = f"{line!r} at place {place}"
            raise TypeError(str(wrong(f"`{name}` of str or bytes", received)))
        if isinstance(line, str):
            line = line.encode("utf-16", "surrogatepass")
            texts[place - first] = line.decode("utf-16", "replace")
    return texts


def _refuse_one_line(lines: object, name: str = "lines") -> None:
    if isinstance(lines, str | bytes):
        received = f"the one sentence {lines!r}. Put it into a list"
        error = wrong(f"`{name}`, a list of sentences", received)
        raise TypeError(str(error))


def _option_column(name: str, value: Option, count: int) -> np.ndarray:
    unset = _UNSET[name]
    kind = object if unset == "" else type(unset)
    value = unset if value is None else value
    try:
        given = np.asarray(value, object if kind is object else None)
        array = given.astype(kind)
        # Whether nothing but the last digits was lost to another type.
        kept = (
            kind is object
            or given.size == 0
            or (
                given.dtype.kind in "biuf"
                and bool(np.isfinite(array).all())
                and np.allclose(array, given, rtol=1e-6)
            )
        )
    except (ValueError, OverflowError):
        kept = False
    if not kept or array.shape not in ((), (count,)):
        raise wrong(
            f"`{name}` as one value or {count}, one for each line, of type "
            f"{np.dtype(kind)}",
            repr(value),
        )
    array = np.broadcast_to(array, (count,))
    return _texts(array, name) if kind is object else array
