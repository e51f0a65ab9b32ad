"""Responses of a server: results from the rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from luong_keras_client.errors import TranslationServerError, argument_error

Arrays = Mapping[str, np.ndarray]
CONTRACT = 3
ABSENT = -1e30  # Score of a rank without a translation.
_ROW = ("truncated", "status")
_NBEST = ("translations", "scores", "truncations", *_ROW)
_SCORE = ("log_probability", "tokens", "word_log_probabilities", "lengths")
_ATTENTION = ("alignments", "source_tokens", "source_lengths")
# Signature -> all its outputs. A server puts requests that name all outputs
# into one batch with requests that name none.
OUTPUTS = {
    "serving_default": ("translation", "score", *_ROW),
    **dict.fromkeys(["translate", "translate_with_options", "search"], _NBEST),
    "align": ("translation", "score", "tokens", "lengths", *_ATTENTION, *_ROW),
    "score": (*_SCORE, *_ROW),
    "align_pair": (*_SCORE, *_ATTENTION, *_ROW),
    "encode": ("memory", "lengths", *_ROW),
}


@dataclass(frozen=True)
class Contract:
    """Version of the contract, limits of a server, and its exported search.

    `stack_size` is 0 if a sentence keeps as many translations as its beam;
    `samples` is 1 if the export draws samples, and -1 if it does not tell.
    """

    version: int
    max_rows: int
    max_text_bytes: int
    max_source_tokens: int
    max_beam_size: int
    n_best: int
    beam_size: int
    stack_size: int
    samples: int

    def check(self, columns: Arrays) -> None:
        """Refuse options that the server would cut or ignore."""
        unset = dict.fromkeys(("temperature", "seed", "top_k", "top_p"), -1)
        unset |= dict.fromkeys(("beam_size", "n_best", "rank", "required"), 0)
        given = {name: np.array([value]) for name, value in unset.items()}
        given |= columns
        for name, limit in {
            "rank": self.n_best - 1,
            "n_best": self.n_best,
            "beam_size": self.max_beam_size,
        }.items():
            if (given[name] > limit).any():
                expected = f"`{name}` from 0 to {limit}, as exported"
                raise argument_error(expected, given[name])
        beams, temperature = given["beam_size"], given["temperature"]
        is_sampled = (temperature > 0) | (temperature < 0) & (self.samples > 0)
        beams = np.where(beams > 0, beams, self.beam_size)
        kept = np.where(is_sampled, self.max_beam_size, beams)
        kept = np.array([self.stack_size]) if self.stack_size else kept
        # Samples are as many as the beam, unless `n_best` names their number.
        ranks = np.where(is_sampled, np.minimum(beams, kept), kept)
        for name, most in {"n_best": kept, "rank": ranks - 1}.items():
            values, limits = np.broadcast_arrays(given[name], most)
            for place in np.flatnonzero(values > limits)[:1]:
                expected = f"`{name}` of at most {limits[place]}"
                received = f"{values[place]}, more than the search keeps"
                raise argument_error(expected, received)
        if (is_sampled & given["required"].astype(bool)).any():
            expected = "`required` phrases in a beam search; samples have none"
            raise argument_error(expected, "samples")
        names = "seed", "top_k", "top_p"
        unread = [name for name in names if (given[name] >= 0).any()]
        if unread and self.samples >= 0 and not is_sampled.any():
            received = f"{', '.join(unread)} in a beam search"
            raise argument_error("a `temperature` with these", received)


@dataclass(frozen=True)
class TranslatedText:
    """A translation with its log-probability, as the search normalised it.

    `truncated` is True if the source or the prefix was longer than the limit,
    or if the translation was cut at its maximum length.
    """

    text: str
    score: float
    truncated: bool = False

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        return {"text": self.text, "score": self.score}


@dataclass(frozen=True, kw_only=True)
class Translation(TranslatedText):
    """A translation with its words, and the source words that were read.

    `alignments` are the (T, S) attention weights. `links` are the positions
    `(source, target)` of the largest weight of each word. `==` does not
    compare the arrays of two results.
    """

    tokens: list[str] = field(hash=False)
    source_tokens: list[str] = field(hash=False)
    alignments: np.ndarray = field(compare=False)
    links: list[tuple[int, int]] = field(hash=False)

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        names = ("tokens", "source_tokens", "links") if links else ()
        return super().as_dict() | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class TranslationScore:
    """Log-probability of a given translation with `</s>`, and of each word.

    `truncated` is True if the source or the target was longer than the limit.
    """

    log_probability: float
    tokens: list[str] = field(hash=False)
    word_log_probabilities: np.ndarray = field(compare=False)
    truncated: bool = False


@dataclass(frozen=True, kw_only=True)
class ScoredTranslation(TranslationScore):
    """A `TranslationScore` with the (T, S) attention weights."""

    source_tokens: list[str] = field(hash=False)
    alignments: np.ndarray = field(compare=False)


def contract_of(arrays: Arrays) -> Contract:
    """Read the response of the signature `contract`."""
    version = int(arrays["version"][0])
    if version != CONTRACT:
        raise TranslationServerError(f"contract {version}", "CONTRACT")
    names = [x.name for x in fields(Contract)]
    numbers = {x: int(arrays[x][0]) for x in names if x in arrays}
    if min(numbers[name] for name in names[:6]) < 1:
        raise ValueError(f"limits of at least 1 expected, not {numbers}")
    # Exports of 0.3.0 do not tell these.
    beam, n_best = numbers["max_beam_size"], numbers["n_best"]
    stack = 0 if n_best == beam else n_best
    older = {"beam_size": beam, "stack_size": stack, "samples": -1}
    return Contract(**older | numbers)


def rows_of(
    count: int, read: Callable[[Arrays, int], Any], arrays: Arrays
) -> list[tuple[bytes, Any]]:
    """Return the status of each row, and its result if the status is OK."""
    if any(len(array) != count for array in arrays.values()):
        raise ValueError(f"not {count} rows in every output")
    for status in set(arrays["status"]):
        if status not in (b"OK", b"TEXT_TOO_LONG", b"TOO_MANY_ROWS"):
            raise ValueError(f"the status {status!r}")
    return [
        (status, read(arrays, row) if status == b"OK" else None)
        for row, status in enumerate(arrays["status"])
    ]


def text_of(arrays: Arrays, row: int) -> TranslatedText:
    """Read a translation of `serving_default`."""
    text = arrays["translation"][row].decode()
    # float32 rounds the score of an absent rank to a lower number.
    score = max(float(arrays["score"][row]), ABSENT)
    return TranslatedText(text, score, bool(arrays["truncated"][row]))


def texts_of(
    arrays: Arrays, row: int, least: float = ABSENT
) -> list[TranslatedText]:
    """Read the translations that a search found, with scores above `least`."""
    columns = [arrays[name][row] for name in _NBEST[:3]]
    return [
        TranslatedText(text.decode(), float(score), bool(truncated))
        for text, score, truncated in zip(*columns, strict=True)
        if score > least
    ]


def best_text_of(arrays: Arrays, row: int) -> TranslatedText:
    """Read the first translation, which is empty if the search found none."""
    return texts_of(arrays, row, -np.inf)[0]


def translation_of(step: str, arrays: Arrays, row: int) -> Translation:
    """Read a translation of `align`; `step` chooses the weights of links."""
    tokens = _tokens_of(arrays, row)
    source = _tokens_of(arrays, row, "source_")
    # With the row of the step that reads the last word, if any.
    weights = _weights_of(arrays, row, len(tokens) + 1, source)
    if not weights[len(tokens) :].any():
        weights = weights[: len(tokens)]
    places = np.arange(len(tokens))
    if step == "reads":
        places = np.minimum(places + 1, len(weights) - 1)
    links = [
        (int(weights[place].argmax()), word)
        for word, place in enumerate(places)
        if (weights[place] > 0).any()
    ]
    weights, links = weights[: len(tokens)], sorted(links)
    values = vars(text_of(arrays, row)) | {"tokens": tokens, "links": links}
    return Translation(**values, source_tokens=source, alignments=weights)


def score_of(arrays: Arrays, row: int) -> TranslationScore:
    """Read a pair of `score`."""
    tokens = _tokens_of(arrays, row)
    value = float(arrays["log_probability"][row])
    words = arrays["word_log_probabilities"][row, : len(tokens)]
    cut = bool(arrays["truncated"][row])
    return TranslationScore(value, tokens, words, cut)


def scored_of(arrays: Arrays, row: int) -> ScoredTranslation:
    """Read a pair of `align_pair`."""
    score = vars(score_of(arrays, row))
    source = _tokens_of(arrays, row, "source_")
    weights = _weights_of(arrays, row, len(score["tokens"]), source)
    return ScoredTranslation(**score, source_tokens=source, alignments=weights)


def memory_of(arrays: Arrays, row: int) -> tuple[np.ndarray, bool]:
    """Read the vectors of `encode`, and whether the sentence was cut."""
    memory = arrays["memory"][row, : arrays["lengths"][row]]
    return memory, bool(arrays["truncated"][row])


def _tokens_of(arrays: Arrays, row: int, prefix: str = "") -> list[str]:
    words = arrays[f"{prefix}tokens"][row, : arrays[f"{prefix}lengths"][row]]
    return [word.decode() for word in words]


def _weights_of(arrays, row, length, source) -> np.ndarray:
    weights = arrays["alignments"][row, :length, : len(source)]
    if weights.ndim != 2 or weights.shape[1] < len(source):
        raise ValueError(f"weights of {len(source)} source words expected")
    return weights
