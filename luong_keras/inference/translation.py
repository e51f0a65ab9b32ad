"""What a translator answers, in Python; the client has the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luong_keras.alignment.aer import best_links

# The score of a rank that the search did not fill: JSON has no -Infinity.
ABSENT_SCORE = -1e30


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: the detokenised translation.
        score: its log-probability, normalised as the search was told.
        tokens: its words or subwords, unknown ones replaced if asked for.
        source_tokens: those of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        links: `(source position, target position)` of the largest weight of
            each token, in the step that `alignment_step` names.
        truncated: whether the source, or the prefix that was asked for, was
            longer than what was read.
    """

    text: str
    score: float
    tokens: list[str]
    source_tokens: list[str]
    alignments: np.ndarray
    links: list[tuple[int, int]]
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
    """What a model says of a given translation.

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
    source_tokens: list[str]
    alignments: np.ndarray
    truncated: bool = False


def translations_of(
    arrays: Mapping[str, np.ndarray], row: int, step: str = "produces"
) -> list[Translation]:
    """The translations of one sentence from the arrays of a batch.

    Args:
        arrays: what the signature `translate` answers, strings as bytes.
        row: the sentence's place in the batch.
        step: whose weights align a word, as `DecodingConfig.alignment_step`.

    Returns:
        The translations that the search found, the best first.
    """
    source = _words(arrays["source_tokens"], arrays["source_lengths"], row)
    width = len(source)
    found = []
    for rank, score in enumerate(arrays["scores"][row]):
        if score <= ABSENT_SCORE:
            break
        length = arrays["lengths"][row, rank]
        tokens = arrays["tokens"][row, rank, :length]
        # With the row of the step that reads the last word, if there is one.
        weights = arrays["alignments"][row, rank, : length + 1, :width]
        if not weights[length:].any():
            weights = weights[:length]
        found.append(
            Translation(
                arrays["translations"][row, rank].decode(),
                float(score),
                [token.decode() for token in tokens],
                source,
                weights[:length],
                sorted(best_links(weights, len(source), length, step)),
                bool(arrays["truncated"][row]),
            )
        )
    return found


def scored_translation_of(
    arrays: Mapping[str, np.ndarray], row: int
) -> ScoredTranslation:
    """One given translation from the arrays of a batch.

    Args:
        arrays: what the signature `score` answers, strings as bytes.
        row: the pair's place in the batch.
    """
    source = _words(arrays["source_tokens"], arrays["source_lengths"], row)
    tokens = _words(arrays["tokens"], arrays["lengths"], row)
    length = len(tokens)
    return ScoredTranslation(
        float(arrays["log_probability"][row]),
        tokens,
        arrays["word_log_probabilities"][row, :length],
        source,
        arrays["alignments"][row, :length, : len(source)],
        bool(arrays["truncated"][row]),
    )


def places_by_length(lines: Sequence[str], size: int) -> Iterator[list[int]]:
    """Places of lines of like length, `size` at a time: little is padded."""
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _words(tokens, lengths, row):
    return [token.decode() for token in tokens[row, : lengths[row]]]
