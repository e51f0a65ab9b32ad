"""Scores as functions of sums over sentences, so that they can be resampled.

A row keeps, of each test sentence, the numbers that its scores are made of,
not the text: those of any choice of sentences are had by adding them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from luong_keras.alignment.aer import AlignmentLinks, LinkScores
from luong_keras.alignment.links import Link
from luong_keras.evaluation.bleu import check_sentences
from luong_keras.missing_package import missing_package

_ORDER = 4  # the longest n-grams of BLEU


class Measure(NamedTuple):
    """A score.

    Attributes:
        title: for a reader.
        columns: the names of the numbers of a sentence.
        decimals: how many a reader is shown.
        percent: whether it is a share.
    """

    title: str
    columns: tuple[str, ...]
    decimals: int
    percent: bool = False


_NGRAMS = tuple(f"matches_{n}" for n in range(1, _ORDER + 1))
MEASURES = {
    "bleu": Measure("BLEU", (*_NGRAMS, "length", "reference_length"), 2),
    "perplexity": Measure(
        "perplexity", ("negative_log_likelihood", "tokens"), 2
    ),
    "aer": Measure("AER", ("alignment_hits", "alignment_total"), 1, True),
}


def bleu_counts(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, list[int]]:
    """What BLEU counts in every sentence, whose words are set apart.

    Raises:
        ValueError: if there are no sentences, or not equally many.
        ImportError: if sacreBLEU is not installed.

    Example:
        >>> counts = bleu_counts(["a b c"], ["a b d e"])
        >>> counts["matches_1"], counts["matches_2"], counts["length"]
        ([2], [1], [3])
    """
    check_sentences(hypotheses, references)
    # Of one sentence alone; what it smooths is not what is read here.
    metric = _bleu()(tokenize="none", force=True, effective_order=True)
    columns: dict[str, list[int]] = {
        name: [] for name in MEASURES["bleu"].columns
    }
    for ours, theirs in zip(hypotheses, references, strict=True):
        found = metric.sentence_score(ours, [theirs])
        for name, count in zip(_NGRAMS, found.counts, strict=True):
            columns[name].append(int(count))
        columns["length"].append(int(found.sys_len))
        columns["reference_length"].append(int(found.ref_len))
    return columns


def alignment_counts(
    links: Sequence[frozenset[Link]], gold: Sequence[AlignmentLinks]
) -> dict[str, list[int]]:
    """What the alignment error rate counts in every sentence.

    AER = 1 - hits / total, with hits = |A ∩ S| + |A ∩ P| and
    total = |A| + |S| (Och and Ney, 2003).
    """
    hits, total = [], []
    for found, reference in zip(links, gold, strict=True):
        counted = LinkScores()
        counted.add(found, reference)
        hits.append(counted.sure_links + counted.possible_links)
        total.append(counted.links + counted.sure)
    return {"alignment_hits": hits, "alignment_total": total}


def scores_of(
    measure: str, columns: dict[str, Sequence[float]], weights: np.ndarray
) -> np.ndarray:
    """A score of several choices of sentences.

    Args:
        measure: a name in `MEASURES`.
        columns: the numbers of every sentence, by their names.
        weights: (R, N), how often each of the N sentences is taken.

    Returns:
        (R,) scores.

    Example:
        >>> counts = {"negative_log_likelihood": [0.0, 2.0], "tokens": [1, 1]}
        >>> weights = np.array([[1, 1], [2, 0]])
        >>> scores_of("perplexity", counts, weights).round(2).tolist()
        [2.72, 1.0]
    """
    names = MEASURES[measure].columns
    table = np.array([columns[name] for name in names], float).T
    if measure == "bleu":
        # A sentence of L words has L - n + 1 n-grams.
        lengths = table[:, _ORDER]
        ngrams = [np.maximum(lengths - n, 0) for n in range(_ORDER)]
        table = np.concatenate([table, np.array(ngrams).T], axis=1)
        return _corpus_bleu(weights @ table)
    sums = weights @ table
    ratio = sums[:, 0] / np.maximum(sums[:, 1], 1)
    return np.exp(ratio) if measure == "perplexity" else 1 - ratio


def _corpus_bleu(sums: np.ndarray) -> np.ndarray:
    compute = _bleu().compute_bleu
    return np.array(
        [
            compute(
                correct=[int(x) for x in row[:_ORDER]],
                total=[int(x) for x in row[_ORDER + 2 :]],
                sys_len=int(row[_ORDER]),
                ref_len=int(row[_ORDER + 1]),
                smooth_method="exp",
            ).score
            for row in sums
        ]
    )


def _bleu() -> Any:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise missing_package("sacrebleu", error) from error
    return BLEU
