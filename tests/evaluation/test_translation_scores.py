import pytest
import sacrebleu

from luong_keras.evaluation.translation_scores import (
    paired_bootstrap,
    sentence_chrf,
    translation_scores,
)

REFERENCES = [f"the {n} cat sees a red house of {n} words ." for n in range(40)]
GOOD = [line.replace("red", "blue") for line in REFERENCES]
WORSE = [line.replace("sees a red", "house") for line in REFERENCES]


def test_the_scores_are_those_of_sacrebleu():
    bleu, chrf, ter = translation_scores(GOOD, REFERENCES)
    for found, expected in (
        (bleu, sacrebleu.corpus_bleu(GOOD, [REFERENCES])),
        (chrf, sacrebleu.corpus_chrf(GOOD, [REFERENCES])),
        (ter, sacrebleu.corpus_ter(GOOD, [REFERENCES])),
    ):
        assert found.metric == expected.name
        assert found.score == pytest.approx(expected.score)
        assert "version:" in found.signature


def test_case_is_ignored_where_it_is_asked_for():
    upper = [line.upper() for line in REFERENCES]
    cased, *_ = translation_scores(upper, REFERENCES)
    lower, chrf, _ = translation_scores(upper, REFERENCES, lowercase=True)
    assert cased.score < 10 and lower.score == pytest.approx(100)
    assert chrf.score == pytest.approx(100) and "case:lc" in lower.signature


def test_a_sentence_is_scored_alone():
    found = sentence_chrf(GOOD, REFERENCES)
    assert found[3] == pytest.approx(
        sacrebleu.sentence_chrf(GOOD[3], [REFERENCES[3]]).score
    )


def test_a_clear_difference_is_no_chance():
    found = paired_bootstrap(WORSE, GOOD, REFERENCES, samples=200)
    assert [score.metric for score in found] == ["BLEU", "chrF2", "TER"]
    for score in found:
        assert score.p_value < 0.05 and "bs:200" in score.signature
    assert found[0].second > found[0].first
    assert found[2].second < found[2].first


def test_no_difference_may_be_chance():
    mixed = [
        b if i % 2 else a
        for i, (a, b) in enumerate(zip(GOOD, WORSE, strict=True))
    ]
    other = [
        a if i % 2 else b
        for i, (a, b) in enumerate(zip(GOOD, WORSE, strict=True))
    ]
    bleu, *_ = paired_bootstrap(mixed, other, REFERENCES, samples=200)
    assert bleu.p_value > 0.05
    assert bleu.first_interval > 0 and bleu.second_interval > 0


@pytest.mark.parametrize("wrong", [[], ["one"], "text"])
def test_sentences_must_pair_up(wrong):
    with pytest.raises(ValueError):
        translation_scores(wrong, REFERENCES)
    with pytest.raises(ValueError):
        paired_bootstrap(GOOD, wrong, REFERENCES)
