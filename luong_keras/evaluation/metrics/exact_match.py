"""Exact match: the share of translations equal to their reference."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from luong_keras.evaluation.bleu import (
    References,
    by_position,
    check_sentences,
)
from luong_keras.evaluation.metrics.metric import Metric, Target


def exact_match(
    translations: Sequence[str],
    references: References,
    lowercase: bool = False,
) -> float:
    """Percentage of translations that equal a reference of theirs.

    Args:
        translations: in the order of `references`.
        references: one a translation, or a list of several for each.
        lowercase: whether case is ignored. Runs of white space count as one
            space.

    Raises:
        ValueError: if there are no sentences, or not equally many.

    Example:
        >>> exact_match(["ran ", "Ran"], ["ran", "ran"])
        50.0
    """
    check_sentences(translations, references)

    def plain(texts: Sequence[str]) -> list[str]:
        return [
            " ".join((t.lower() if lowercase else t).split()) for t in texts
        ]

    positions = [plain(texts) for texts in by_position(references)]
    rows = zip(plain(translations), *positions, strict=True)
    right = sum(found in several for found, *several in rows)
    return 100 * right / len(references)


def metric(target: Target) -> Metric:
    """The metric of a run's text."""
    score = functools.partial(exact_match, lowercase=target.lowercase)
    return Metric("exact_match", score, title="exact match")
