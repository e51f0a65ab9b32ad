"""What a server answers, as arrays, and what a row of them says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from luong_keras_client.errors import TranslationServerError

Arrays = Mapping[str, np.ndarray]
CONTRACTS = (2, 3)
_OK, _TOO_LONG, _TOO_MANY = b"OK", b"TEXT_TOO_LONG", b"TOO_MANY_ROWS"
_ABSENT = -1e30  # The score of a rank that the search did not fill.
_ROW = ("truncated", "status")
# `truncations` is new in contract 3.
_NBEST = ("translations", "scores", "truncations", *_ROW)
_SCORE = ("log_probability", "tokens", "word_log_probabilities", "lengths")
_ATTENTION = ("alignments", "source_tokens", "source_lengths")
# Signature -> all of its outputs: a server joins requests that name all with
# those that name none. `contract` has whatever there is.
_OUTPUTS = {
    "serving_default": ("translation", "score", *_ROW),
    **dict.fromkeys(["translate", "translate_with_options", "search"], _NBEST),
    "align": ("translation", "score", *_SCORE[1::2], *_ATTENTION, *_ROW),
    "score": (*_SCORE, *_ROW),
    "align_pair": (*_SCORE, *_ATTENTION, *_ROW),
    "encode": ("memory", "lengths", *_ROW),
}


def outputs_of(signature: str, version: int) -> list[str]:
    """The outputs of a signature in a version of the contract."""
    outputs = _OUTPUTS[signature]
    return [x for x in outputs if version >= 3 or x != "truncations"]


@dataclass(frozen=True)
class Contract:
    """What a served translator takes; `max_rows` and `n_best` in a request."""

    version: int
    max_rows: int
    max_text_bytes: int
    max_source_tokens: int
    max_beam_size: int
    n_best: int


@dataclass(frozen=True)
class TranslatedText:
    """A translation with its log-probability, as the search normalised it.

    `truncated` where the source or the prefix was longer than what was read,
    or the translation was cut at its maximum length.
    """

    text: str
    score: float
    truncated: bool = False

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        """Text and score, ready for JSON."""
        return {"text": self.text, "score": self.score}


@dataclass(frozen=True, kw_only=True)
class Translation(TranslatedText):
    """A translation with its words, and those of the source that were read.

    `alignments` are the (T, S) attention weights, `links` the places `(source,
    target)` of the largest weight of each word.
    """

    tokens: list[str]
    source_tokens: list[str]
    alignments: np.ndarray
    links: list[tuple[int, int]]

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        """Text and score, ready for JSON; with the words and their links."""
        names = ("tokens", "source_tokens", "links") if links else ()
        return super().as_dict() | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class TranslationScore:
    """How probable a given translation is, with `</s>`, and each word of it.

    `truncated` where one of the two was longer than what was read.
    """

    log_probability: float
    tokens: list[str]
    word_log_probabilities: np.ndarray
    truncated: bool = False


@dataclass(frozen=True, kw_only=True)
class ScoredTranslation(TranslationScore):
    """Likewise, with the (T, S) attention weights."""

    source_tokens: list[str]
    alignments: np.ndarray


def contract_of(arrays: Arrays) -> Contract:
    """What the signature `contract` says."""
    version = int(arrays["version"][0])
    if version not in CONTRACTS:
        raise TranslationServerError(f"contract {version}", "CONTRACT")
    limits = {x.name: int(arrays[x.name][0]) for x in fields(Contract)}
    if min(limits.values()) < 1:
        raise ValueError(f"limits of at least 1 expected, not {limits}")
    return Contract(**limits)


def rows_of(
    arrays: Arrays, count: int, read: Callable[[Arrays, int], Any]
) -> list[Any]:
    """What each row says; True where it is to be sent again, False too long."""
    if any(len(array) != count for array in arrays.values()):
        raise ValueError(f"not {count} rows in every output")
    special = {_TOO_LONG: False, _TOO_MANY: True}
    return [
        read(arrays, row) if status == _OK else special[status]
        for row, status in enumerate(arrays["status"])
    ]


def text_of(arrays: Arrays, row: int) -> TranslatedText:
    """A translation of `serving_default`."""
    text = arrays["translation"][row].decode()
    return TranslatedText(text, *_numbers(arrays, "score", row))


def texts_of(arrays: Arrays, row: int) -> list[TranslatedText]:
    """The translations that a search found."""
    scores = arrays["scores"][row]
    cut = np.broadcast_to(arrays["truncated"][row], len(scores))
    # Contract 2 had it of a sentence alone.
    cut = arrays["truncations"][row] if "truncations" in arrays else cut
    columns = zip(arrays["translations"][row], scores, cut, strict=True)
    return [
        TranslatedText(text.decode(), float(score), bool(cut))
        for text, score, cut in columns
        if score > _ABSENT
    ]


def translation_of(step: str, arrays: Arrays, row: int) -> Translation:
    """A translation of `align`; `step` says whose weights make its links."""
    tokens, source = _words(arrays, row), _words(arrays, row, "source_")
    length = len(tokens)
    # With the row of the step that reads the last word, if there is one.
    weights = arrays["alignments"][row, : length + 1, : len(source)]
    if not weights[length:].any():
        weights = weights[:length]
    places = np.arange(length)
    if step == "reads":
        places = np.minimum(places + 1, len(weights) - 1)
    links = [
        (int(weights[place].argmax()), word)
        for word, place in enumerate(places)
        if (weights[place] > 0).any()
    ]
    return Translation(
        **vars(text_of(arrays, row)),
        tokens=tokens,
        source_tokens=source,
        alignments=weights[:length],
        links=sorted(links),
    )


def score_of(arrays: Arrays, row: int) -> TranslationScore:
    """A pair of `score`."""
    tokens = _words(arrays, row)
    value, truncated = _numbers(arrays, "log_probability", row)
    words = arrays["word_log_probabilities"][row, : len(tokens)]
    return TranslationScore(value, tokens, words, truncated)


def scored_of(arrays: Arrays, row: int) -> ScoredTranslation:
    """A pair of `align_pair`."""
    score, source = score_of(arrays, row), _words(arrays, row, "source_")
    weights = arrays["alignments"][row, : len(score.tokens), : len(source)]
    return ScoredTranslation(
        **vars(score), source_tokens=source, alignments=weights
    )


def memory_of(arrays: Arrays, row: int) -> tuple[np.ndarray, bool]:
    """The vectors of `encode`, and whether the sentence was cut."""
    memory = arrays["memory"][row, : arrays["lengths"][row]]
    return memory, bool(arrays["truncated"][row])


def _numbers(arrays: Arrays, name: str, row: int) -> tuple[float, bool]:
    return float(arrays[name][row]), bool(arrays["truncated"][row])


def _words(arrays: Arrays, row: int, of: str = "") -> list[str]:
    words = arrays[f"{of}tokens"][row, : arrays[f"{of}lengths"][row]]
    return [word.decode() for word in words]
