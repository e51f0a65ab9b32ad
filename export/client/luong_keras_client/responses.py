"""Responses of a server: results from the rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from luong_keras_client.errors import TranslationServerError, argument_error

Arrays = Mapping[str, np.ndarray]
Result = tuple[Any, bool]  # of a line, and whether to warn that it was cut
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
_OF_SAMPLES = ("seed", "top_k", "top_p")
# Values of absent options in the checks of a contract.
_UNSET = {
    "temperature": -1,
    **dict.fromkeys(("beam_size", "n_best", "rank", "required"), 0),
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
        names = [name for name in _UNSET if name in columns]
        given = (columns[name].tolist() for name in names)
        # Each row once, in their order.
        rows = dict.fromkeys(zip(*given, strict=True) if names else [()])
        is_sampled = [
            self._check_row(**_UNSET | dict(zip(names, row, strict=True)))
            for row in rows
        ]
        unread = [
            name
            for name in _OF_SAMPLES
            if name in columns and (columns[name] >= 0).any()
        ]
        if unread and self.samples >= 0 and not any(is_sampled):
            received = f"{', '.join(unread)} in a beam search"
            raise argument_error("a `temperature` with these", received)

    def _check_row(
        self, temperature, beam_size, n_best, rank, required
    ) -> bool:
        """Check the options of a line, and test whether it is sampled."""
        is_sampled = temperature > 0 or temperature < 0 < self.samples
        beam = beam_size or self.beam_size
        kept = self.stack_size or (self.max_beam_size if is_sampled else beam)
        # Samples are as many as the beam, unless `n_best` names their number.
        ranks = min(beam, kept) if is_sampled else kept
        exported, searched = "as exported", "as many as the search keeps"
        for name, value, limit, why in (
            ("rank", rank, self.n_best - 1, exported),
            ("n_best", n_best, self.n_best, exported),
            ("beam_size", beam_size, self.max_beam_size, exported),
            ("n_best", n_best, kept, searched),
            ("rank", rank, ranks - 1, searched),
        ):
            if value > limit:
                expected = f"`{name}` from 0 to {limit}, {why}"
                raise argument_error(expected, value)
        if is_sampled and required:
            expected = "`required` phrases in a beam search; samples have none"
            raise argument_error(expected, "samples")
        return is_sampled


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
    count: int, read: Callable[[Arrays, int], Result], arrays: Arrays
) -> list[tuple[bytes, Result | None]]:
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


def text_of(arrays: Arrays, row: int) -> Result:
    """Read the best text, which is empty if a search found none."""
    is_search = "translations" in arrays
    best = _texts_of(arrays, row)[0] if is_search else _text_of(arrays, row)
    return best.text, best.truncated or best.score <= ABSENT


def texts_of(arrays: Arrays, row: int) -> Result:
    """Read the translations that a search found."""
    texts = [x for x in _texts_of(arrays, row) if x.score > ABSENT]
    return texts, not texts or any(text.truncated for text in texts)


def _text_of(arrays: Arrays, row: int) -> TranslatedText:
    text = arrays["translation"][row].decode()
    # float32 rounds the score of an absent rank to a lower number.
    score = max(float(arrays["score"][row]), ABSENT)
    return TranslatedText(text, score, bool(arrays["truncated"][row]))


def _texts_of(arrays: Arrays, row: int) -> list[TranslatedText]:
    columns = [arrays[name][row] for name in _NBEST[:3]]
    return [
        TranslatedText(text.decode(), float(score), bool(truncated))
        for text, score, truncated in zip(*columns, strict=True)
    ]


def translation_of(step: str, arrays: Arrays, row: int) -> Result:
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
    found = Translation(
        **vars(_text_of(arrays, row)),
        tokens=tokens,
        source_tokens=source,
        alignments=weights,
        links=links,
    )
    return found, found.truncated


def score_of(arrays: Arrays, row: int) -> Result:
    """Read a pair of `score`; its result tells whether it was cut."""
    tokens = _tokens_of(arrays, row)
    value = float(arrays["log_probability"][row])
    words = arrays["word_log_probabilities"][row, : len(tokens)]
    cut = bool(arrays["truncated"][row])
    return TranslationScore(value, tokens, words, cut), False


def scored_of(arrays: Arrays, row: int) -> Result:
    """Read a pair of `align_pair`."""
    score = vars(score_of(arrays, row)[0])
    source = _tokens_of(arrays, row, "source_")
    weights = _weights_of(arrays, row, len(score["tokens"]), source)
    found = ScoredTranslation(**score, source_tokens=source, alignments=weights)
    return found, False


def memory_of(arrays: Arrays, row: int) -> Result:
    """Read the vectors of `encode`."""
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
