"""Minimum Bayes risk choices."""

import itertools

import numpy as np
import pytest
import sacrebleu

from luong_keras.evaluation.minimum_bayes_risk import minimum_bayes_risk

TEXTS = ["a big house .", "a house .", "the house", "a big house .", "no", ""]


@pytest.mark.slow
@pytest.mark.parametrize(
    "utility, measure",
    [("chrf", sacrebleu.sentence_chrf), ("bleu", sacrebleu.sentence_bleu)],
    ids=["chrf", "bleu"],
)
def test_text_of_largest_mean_utility_is_chosen(utility, measure):
    for texts in itertools.permutations(TEXTS, 4):
        means = [sum(measure(a, [b]).score for b in texts) for a in texts]
        assert means[minimum_bayes_risk(texts, utility)] == pytest.approx(
            max(means)
        )


def test_text_similar_to_most_others_is_chosen():
    texts = ["x y z", "the cat", "the cat", "the dog"]
    assert minimum_bayes_risk(texts) == 1
    assert minimum_bayes_risk(np.array(texts)) == 1


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@pytest.mark.parametrize(
    "texts",
    [
        ["下雨了", "我们喜欢这只猫", "我们喜欢那只猫", "我们不喜欢那只猫"],
        ["ฝนตก", "ฉันรักแมวนี้", "ฉันรักแมวนั้น", "ฉันไม่รักแมวนั้น"],
    ],
    ids=["zh", "th"],
)
def test_text_without_spaces_is_compared(texts, utility):
    assert minimum_bayes_risk(texts, utility) == 2


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="utility='ter'"):
        minimum_bayes_risk(["a"], "ter")
    with pytest.raises(ValueError, match="one text"):
        minimum_bayes_risk([])
