"""What a client asks: a signature, its inputs, what to make of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from luong_keras.inference import translation as answers
from luong_keras.inference.search_options import (
    BEAM_OPTIONS,
    SEARCH_OPTIONS,
    Lines,
    Option,
    option_column,
    text_column,
)

Result = TypeVar("Result")
_NBEST = tuple(SEARCH_OPTIONS)
_SEARCH = tuple(name for name in _NBEST if name != "n_best")
_ALIGN = ("rank", *(name for name in BEAM_OPTIONS if name != "n_best"))


@dataclass(frozen=True)
class Question(Generic[Result]):
    """What is asked of some lines.

    Attributes:
        signature: that is asked.
        columns: input -> (B,) values.
        result_of: the result of a row from the arrays of an answer.
        first: the place of the first line, for messages.
    """

    signature: str
    columns: dict[str, np.ndarray]
    result_of: Callable[[Mapping[str, np.ndarray], int], Result]
    first: int = 0

    def __len__(self) -> int:
        """The number of lines."""
        return len(next(iter(self.columns.values())))

    def sizes(self) -> list[int]:
        """Of each line: the bytes of its longest text."""
        longest = [0] * len(self)
        for column in self.columns.values():
            if column.dtype == object:
                for place, text in enumerate(column):
                    size = len(text.encode() if type(text) is str else text)
                    longest[place] = max(longest[place], size)
        return longest


def translation(
    lines: Lines, options: Mapping[str, Option], first: int = 0
) -> Question[answers.TranslatedText]:
    """Asks for the best translation of every line."""
    text = text_column(lines, first=first)
    if all(value is None for value in options.values()):
        _check_names("translate", options, _SEARCH)
        return Question(
            "serving_default",
            {"text": text},
            answers.translated_text_of,
            first,
        )
    _check_names("translate", options, _SEARCH)
    signature, columns = _chosen(text, {**options, "n_best": 1})
    return Question(signature, columns, _best, first)


def nbest(
    lines: Lines, options: Mapping[str, Option]
) -> Question[list[answers.TranslatedText]]:
    """Asks for several translations of every line."""
    text = text_column(lines)
    signature, columns = "translate", {"text": text}
    _check_names("nbest", options, _NBEST)
    if any(value is not None for value in options.values()):
        signature, columns = _chosen(text, options)
    return Question(signature, columns, answers.translated_texts_of)


def alignment(
    lines: Lines, rank: Option, options: Mapping[str, Option], step: str
) -> Question[answers.Translation]:
    """Asks for the words and weights of one translation of every line."""
    options = {"rank": rank, **options}
    columns = _with_options("align", text_column(lines), options, _ALIGN)
    result_of = partial(answers.aligned_translation_of, step=step)
    return Question("align", columns, result_of)


def score(sources: Lines, targets: Lines) -> Question[answers.TranslationScore]:
    """Asks how probable given translations are."""
    columns = _pairs(sources, targets)
    return Question("score", columns, answers.translation_score_of)


def pair_alignment(
    sources: Lines, targets: Lines
) -> Question[answers.ScoredTranslation]:
    """Asks for the weights of given translations as well."""
    columns = _pairs(sources, targets)
    return Question("align_pair", columns, answers.scored_translation_of)


def encoding(lines: Lines) -> Question[tuple[np.ndarray, bool]]:
    """Asks for the encoder's vectors of every line, and whether it was cut."""
    return Question("encode", {"text": text_column(lines)}, _memory)


def check_single(options: Mapping[str, Any]) -> None:
    """Refuses an option for each line, where nobody knows how many come.

    Example:
        >>> check_single({"beam_size": [1, 2]})
        Traceback (most recent call last):
        ValueError: Expected: one value of `beam_size` for all lines.
        Received: [1, 2].
    """
    _check_names("translate_lines", options, _SEARCH)
    for name, value in options.items():
        if value is not None and np.ndim(value) != 0:
            raise ValueError(
                f"Expected: one value of `{name}` for all lines. Received: "
                f"{value!r}."
            )


def _best(arrays, row):
    return answers.translated_texts_of(arrays, row)[0]


def _memory(arrays, row):
    memory = arrays["memory"][row, : arrays["lengths"][row]]
    return memory, bool(arrays["truncated"][row])


def _pairs(sources: Lines, targets: Lines) -> dict[str, np.ndarray]:
    source = text_column(sources, "sources")
    target = text_column(targets, "targets")
    if len(source) != len(target):
        raise ValueError(
            "Expected: as many targets as sources. Received: "
            f"{len(target)} and {len(source)}."
        )
    return {"source": source, "target": target}


def _chosen(text, options) -> tuple[str, dict[str, np.ndarray]]:
    """The smallest signature that takes these options, and its columns."""
    given = {name for name in options if options[name] is not None}
    if given <= set(BEAM_OPTIONS):
        signature, names = "translate_with_options", BEAM_OPTIONS
    else:
        signature, names = "search", _NBEST
    options = {name: options.get(name) for name in names}
    return signature, _with_options(signature, text, options, names)


def _with_options(method, text, options, names) -> dict[str, np.ndarray]:
    _check_names(method, options, names)
    given = {name: options.get(name) for name in names}
    return {"text": text} | {
        name: option_column(name, value, len(text))
        for name, value in given.items()
    }


def _check_names(method, options, names) -> None:
    for name in options:
        if name not in names:
            raise TypeError(
                f"Expected: options of `{method}`, {', '.join(names)}. "
                f"Received: {name}."
            )
