"""Scores as functions of sums over sentences, which allow resampling.

A record keeps sufficient statistics of each test sentence, not its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from luong_keras.alignment.aer import AlignmentLinks, LinkScores
from luong_keras.alignment.links import Link

_ORDER = 4  # length of the longest n-grams of BLEU
_NGRAMS = tuple(f"matches_{n}" for n in range(1, _ORDER + 1))


class Measure(NamedTuple):
    """A score: its title, its columns and its number format."""

    title: str
    columns: tuple[str, ...]
    decimals: int = 2
    percent: bool = False


MEASURES = {
    "bleu": Measure("BLEU", (*_NGRAMS, "length", "reference_length")),
    "perplexity": Measure("perplexity", ("negative_log_likelihood", "tokens")),
    "aer": Measure("AER", ("alignment_hits", "alignment_total"), 1, True),
}


def bleu_counts(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, list[int]]:
    """Return the counts of BLEU for each sentence of tokenised text."""
    # Smoothing changes the score of a sentence, not its counts.
    metric = BLEU(tokenize="none", force=True, effective_order=True)
    rows = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        score = metric.sentence_score(ours, [theirs])
        rows.append([*score.counts, score.sys_len, score.ref_len])
    columns = np.array(rows, int).T.tolist()
    return dict(zip(MEASURES["bleu"].columns, columns, strict=True))


def alignment_counts(
    links: Sequence[frozenset[Link]], gold: Sequence[AlignmentLinks]
) -> dict[str, list[int]]:
    """Return the counts of the alignment error rate for each sentence.

    AER = 1 - hits / total, with hits = |A ∩ S| + |A ∩ P| and
    total = |A| + |S| (Och and Ney, 2003).
    """
    hits, total = [], []
    for sentence_links, reference in zip(links, gold, strict=True):
        scores = LinkScores()
        scores.add(sentence_links, reference)
        hits.append(scores.sure_links + scores.possible_links)
        total.append(scores.links + scores.sure)
    return {"alignment_hits": hits, "alignment_total": total}


def scores_of(
    measure: str, columns: Mapping[str, Sequence[float]], weights: np.ndarray
) -> np.ndarray:
    """Return the scores of several samples of sentences.

    `columns` are sufficient statistics of N sentences. `weights` (R, N) counts
    each sentence in each of R samples.
    """
    names = MEASURES[measure].columns
    table = np.array([columns[name] for name in names], float).T
    if measure != "bleu":
        first, second = (weights @ table).T
        ratio = first / np.maximum(second, 1)
        return np.exp(ratio) if measure == "perplexity" else 1 - ratio
    # A sentence of L words has L - n + 1 n-grams.
    ngrams = np.maximum(table[:, [_ORDER]] - np.arange(_ORDER), 0)
    sums = (weights @ np.concatenate([table, ngrams], axis=1)).astype(int)
    return np.array([_bleu(row.tolist()) for row in sums])


def _bleu(sums: list[int]) -> float:
    return BLEU.compute_bleu(
        correct=sums[:_ORDER],
        total=sums[_ORDER + 2 :],
        sys_len=sums[_ORDER],
        ref_len=sums[_ORDER + 1],
        smooth_method="exp",
    ).score
