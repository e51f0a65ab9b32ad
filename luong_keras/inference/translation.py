"""Results of a translator in Python; the client has the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from luong_keras.alignment.aer import best_links
from luong_keras.tables import html_table, text_table

# The score of a rank that the search did not fill: JSON has no -Infinity.
ABSENT_SCORE = -1e30
_OF_A_RANK = ("tokens", "lengths", "alignments")
_OF_A_SOURCE = ("source_tokens", "source_lengths", "truncated")


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: the detokenised translation.
        score: its log-probability, normalised by the rule of the search.
        tokens: its words or subwords, unknown ones replaced if asked for.
        source_tokens: those of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        links: `(source position, target position)` of the largest weight of
            each token, in the step that `alignment_step` names.
        truncated: whether the source, or the prefix that was asked for, was
            longer than what was read, or the translation was cut at its
            maximum length, without `</s>`.
    """

    text: str
    score: float
    tokens: list[str] = field(repr=False)
    source_tokens: list[str] = field(repr=False)
    alignments: np.ndarray = field(repr=False)
    links: list[tuple[int, int]] = field(repr=False)
    truncated: bool = False

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        """Text and score, ready for JSON; with the words and their links.

        Example:
            >>> weights = np.ones((1, 1))
            >>> found = Translation("Tür", -0.5, ["Tür"], ["door"], weights, [])
            >>> found.as_dict()
            {'text': 'Tür', 'score': -0.5}
        """
        found: dict[str, Any] = {"text": self.text, "score": self.score}
        if links:
            found["tokens"] = self.tokens
            found["source_tokens"] = self.source_tokens
            found["links"] = self.links
        return found


@dataclass(frozen=True)
class ScoredTranslation:
    """The score and alignment of a given translation.

    Attributes:
        log_probability: of all its words and `</s>`.
        tokens: its words or subwords, as far as they were read, and `</s>`.
        word_log_probabilities: (T,) of each token, given those before it.
        source_tokens: those of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        truncated: whether one of the two was longer than what was read.
    """

    log_probability: float
    tokens: list[str]
    word_log_probabilities: np.ndarray
    source_tokens: list[str] = field(repr=False)
    alignments: np.ndarray = field(repr=False)
    truncated: bool = False


class NBest(list[Any]):
    """Translations, the best first, or lists of them, that print as a table.

    Example:
        >>> weights = np.ones((1, 1))
        >>> found = Translation("Tür", -0.5, ["Tür"], ["door"], weights, [])
        >>> NBest([NBest([found])])
        sentence  score  translation
        1         -0.50  Tür
    """

    def _rows(self) -> list[tuple[str, ...]]:
        lists = self if self and isinstance(self[0], list) else [self]
        rows: list[tuple[str, ...]] = [("sentence", "score", "translation")]
        for number, found in enumerate(lists, start=1):
            rows += [(str(number), f"{t.score:.2f}", t.text) for t in found]
        return rows if lists is self else [row[1:] for row in rows]

    def __repr__(self) -> str:
        return text_table(self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._rows())


def translations_of(
    arrays: Mapping[str, np.ndarray], row: int, step: str = "produces"
) -> NBest:
    """The translations of one sentence, with their words.

    Args:
        arrays: of a batch of sentences, N translations each, strings as
            bytes: `translations` and `scores` (B, N), `tokens` (B, N, T),
            `lengths` (B, N), `alignments` (B, N, T, S), `source_tokens`,
            `source_lengths`, `truncated` (B,) and `unfinished` (B, N).
        row: the sentence's place in the batch.
        step: whose weights align a word, as `DecodingConfig.alignment_step`.

    Returns:
        The translations that the search found, the best first.
    """
    return NBest(
        _translation(
            {name: arrays[name][:, rank] for name in _OF_A_RANK}
            | {name: arrays[name] for name in _OF_A_SOURCE}
            | {
                "truncated": arrays["truncated"] | arrays["unfinished"][:, rank]
            },
            (arrays["translations"][row, rank], score),
            row,
            step,
        )
        for rank, score in enumerate(arrays["scores"][row])
        if score > ABSENT_SCORE
    )


def best_text_of(arrays: Mapping[str, np.ndarray], row: int) -> str:
    """The text of the best translation of one sentence; "" without one.

    Args:
        arrays: of a batch of sentences, as `translations_of` takes them.
        row: the sentence's place in the batch.
    """
    if arrays["scores"][row, 0] <= ABSENT_SCORE:
        return ""
    return arrays["translations"][row, 0].decode()


def scored_translation_of(
    arrays: Mapping[str, np.ndarray], row: int
) -> ScoredTranslation:
    """One given translation from the arrays of a batch.

    Args:
        arrays: what the signature `align_pair` answers, strings as bytes.
        row: the pair's place in the batch.
    """
    tokens = _words(arrays["tokens"], arrays["lengths"], row)
    source = _words(arrays["source_tokens"], arrays["source_lengths"], row)
    return ScoredTranslation(
        float(arrays["log_probability"][row]),
        tokens,
        arrays["word_log_probabilities"][row, : len(tokens)],
        source,
        arrays["alignments"][row, : len(tokens), : len(source)],
        bool(arrays["truncated"][row]),
    )


def places_by_length(lines: Sequence[str], size: int) -> Iterator[list[int]]:
    """Places of lines of like length, `size` at a time: little is padded."""
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _translation(arrays, text_and_score, row, step) -> Translation:
    """From the arrays of one translation a sentence."""
    text, score = text_and_score
    source = _words(arrays["source_tokens"], arrays["source_lengths"], row)
    tokens = _words(arrays["tokens"], arrays["lengths"], row)
    length = len(tokens)
    # With the row of the step that reads the last word, if there is one.
    weights = arrays["alignments"][row, : length + 1, : len(source)]
    if not weights[length:].any():
        weights = weights[:length]
    return Translation(
        text.decode(),
        float(score),
        tokens,
        source,
        weights[:length],
        sorted(best_links(weights, len(source), length, step)),
        bool(arrays["truncated"][row]),
    )


def _words(tokens, lengths, row):
    return [token.decode() for token in tokens[row, : lengths[row]]]
