"""Perplexity a word."""

import math

import pytest

from luong_keras.evaluation.perplexity import word_perplexity


def test_uniform_distribution_has_its_size_as_perplexity():
    assert word_perplexity(7 * math.log(50.0), 7) == pytest.approx(50.0)


def test_certain_predictions_have_perplexity_one():
    assert word_perplexity(0.0, 3) == 1.0


def test_huge_loss_is_infinite():
    assert word_perplexity(1e6, 1) == math.inf
    assert word_perplexity(math.inf, 1) == math.inf


@pytest.mark.parametrize(
    ("loss", "words", "message"),
    [
        (1.0, 0, "Received: 0"),
        (1.0, -2, "Received: -2"),
        (-1.0, 2, "not of log p"),
        (math.nan, 2, "Received: nan"),
    ],
)
def test_bad_arguments(loss, words, message):
    with pytest.raises(ValueError, match=message):
        word_perplexity(loss, words)
