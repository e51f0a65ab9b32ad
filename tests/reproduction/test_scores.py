"""Scores from sums over sentences, compared with sacreBLEU and by hand."""

import numpy as np
import pytest

from luong_keras.alignment.aer import alignment_error_rate, parse_alignments
from luong_keras.evaluation.translation_scores import corpus_bleu
from reproduction.scores import alignment_counts, bleu_counts, scores_of

HYPOTHESES = ["a b c d e f", "b c", "the old man opens the door", "x"]
REFERENCES = ["a b c d f e g", "b c d", "the old man opened the door", "y z"]


def test_bleu_of_resampled_sentences_equals_sacrebleu():
    counts = bleu_counts(HYPOTHESES, REFERENCES)
    weights = np.array([[1, 1, 1, 1], [0, 2, 1, 0], [1, 0, 0, 3], [0, 0, 0, 1]])
    found = scores_of("bleu", counts, weights)
    for row, score in zip(weights, found, strict=True):
        texts = np.repeat(HYPOTHESES, row), np.repeat(REFERENCES, row)
        expected = corpus_bleu(*texts, tokenize="none").score
        assert score == pytest.approx(expected, abs=1e-9)


def test_perplexity_is_averaged_over_all_tokens():
    columns = {"negative_log_likelihood": [6.0, 1.0], "tokens": [3, 1]}
    found = scores_of("perplexity", columns, np.array([[1, 1], [0, 5]]))
    np.testing.assert_allclose(found, np.exp([7 / 4, 1]))


def test_alignment_error_rate_equals_that_of_the_corpus():
    gold = parse_alignments(["0-0 1-1 2p1", "0-0", "1-0 0p0"])
    links = [
        frozenset({(0, 0), (2, 1)}),
        frozenset({(1, 1)}),
        frozenset({(1, 0), (0, 0)}),
    ]
    counts = alignment_counts(links, gold)
    for chosen in ([0, 1, 2], [0, 2], [1]):
        weights = np.zeros((1, 3))
        weights[0, chosen] = 1
        (found,) = scores_of("aer", counts, weights)
        expected = alignment_error_rate(
            [links[i] for i in chosen], [gold[i] for i in chosen]
        )
        assert found == pytest.approx(expected, abs=1e-12)
