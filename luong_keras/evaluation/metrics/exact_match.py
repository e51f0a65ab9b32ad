"""Exact match: the share of translations equal to their reference."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from luong_keras.evaluation.bleu import check_sentences
from luong_keras.evaluation.metrics.metric import Metric, Target


def exact_match(
    translations: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
) -> float:
    """Percentage of translations that equal their reference.

    Args:
        translations: in the order of `references`.
        references: one a translation.
        lowercase: whether case is ignored. Runs of white space count as one
            space.

    Raises:
        ValueError: if there are no sentences, or not equally many.

    Example:
        >>> exact_match(["ran ", "Ran"], ["ran", "ran"])
        50.0
    """
    check_sentences(translations, references)
    sides = [
        [" ".join((t.lower() if lowercase else t).split()) for t in side]
        for side in (translations, references)
    ]
    right = sum(map(str.__eq__, *sides))
    return 100 * right / len(references)


def metric(target: Target) -> Metric:
    """The metric of a run's text."""
    score = functools.partial(exact_match, lowercase=target.lowercase)
    return Metric("exact_match", score, title="exact match")
