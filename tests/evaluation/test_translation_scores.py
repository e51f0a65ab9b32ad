import math
import sys

import numpy as np
import pytest
import sacrebleu

from luong_keras.evaluation.plots import plot_alignment
from luong_keras.evaluation.translation_scores import (
    corpus_bleu,
    paired_test,
    sentence_chrf,
    translation_score,
    translation_scores,
)

REFERENCES = [f"the {n} cat sees a red house of {n} words ." for n in range(40)]
GOOD = [line.replace("red", "blue") for line in REFERENCES]
WORSE = [line.replace("sees a red", "house") for line in REFERENCES]


def test_hand_computed_score():
    # 5 of 6 words match, 3 of 5 bigrams, 2 of 4 trigrams and 1 of 3 4-grams;
    # no brevity penalty.
    bleu = corpus_bleu(["a b c d x e"], ["a b c d y e"], tokenize="none")
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu.score == pytest.approx(100 * expected)


def test_raw_text_is_tokenised():
    hypotheses, references = ["Ja, das ist gut ."], ["Ja, das ist gut."]
    assert corpus_bleu(hypotheses, references).score == pytest.approx(100)
    assert corpus_bleu(hypotheses, references, "none").score < 90


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a", "b"], ["a"], "2 and 1"),
        ([], [], "empty lists"),
        ("a b", ["a b"], "`hypotheses` must be a list"),
        (["a b"], "a b", "`references` must be a list"),
        (["a", None], ["a"] * 2, "`hypotheses` .* Received: None at place 1"),
        (["a", ["b"]], ["a"] * 2, r"`hypotheses` .* \['b'\] at place 1"),
        (["a"], [math.nan], "`references` .* nan at place 0"),
        (["a"], [b"a"], "`references` .* b'a' at place 0"),
        (["a"], [["a", None]], "`references` .* None] at place 0"),
    ],
)
def test_invalid_sentences_are_refused(hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        corpus_bleu(hypotheses, references)
    with pytest.raises(ValueError, match=message):
        paired_test(hypotheses, hypotheses, references)


def test_scores_equal_sacrebleu():
    calls = sacrebleu.corpus_bleu, sacrebleu.corpus_chrf, sacrebleu.corpus_ter
    scores = translation_scores(GOOD, REFERENCES)
    for found, call in zip(scores, calls, strict=True):
        expected = call(GOOD, [REFERENCES])
        assert found.metric == expected.name
        assert found.score == pytest.approx(expected.score)
        assert "version:" in found.signature
    one = sacrebleu.sentence_chrf(GOOD[3], [REFERENCES[3]]).score
    assert sentence_chrf(GOOD, REFERENCES)[3] == pytest.approx(one)


def test_arrays_are_scored_as_lists():
    arrays = np.array(GOOD), np.array(REFERENCES)
    assert translation_scores(*arrays) == translation_scores(GOOD, REFERENCES)
    with pytest.raises(ValueError, match="at least one sentence"):
        translation_scores(np.array([]), np.array([]))


def test_lowercase_option_ignores_case():
    upper = [line.upper() for line in REFERENCES]
    cased, *_ = translation_scores(upper, REFERENCES)
    lower, chrf, _ = translation_scores(upper, REFERENCES, lowercase=True)
    assert cased.score < 10 and lower.score == pytest.approx(100)
    assert chrf.score == pytest.approx(100) and "case:lc" in lower.signature


@pytest.mark.parametrize("tokenize", ["none", "13a"])
def test_tokenize_option_selects_the_tokens_of_bleu(tokenize):
    ours, theirs = ["a,b c d e."], ["a,b c d e ."]
    found, *_ = translation_scores(ours, theirs, tokenize=tokenize)
    expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize).score
    assert found.score == pytest.approx(expected)
    assert f"tok:{tokenize}" in found.signature
    compared = paired_test(ours, ours, theirs, samples=9, tokenize=tokenize)
    assert compared[0].first == pytest.approx(expected)


def test_a_clear_difference_is_significant():
    found = paired_test(WORSE, GOOD, REFERENCES, samples=200)
    assert [score.metric for score in found] == ["BLEU", "chrF2", "TER"]
    for score in found:
        assert score.p_value < 0.05 and "bs:200" in score.signature
        assert "ar:200" in score.signature and "seed:12345" in score.signature
    assert found[0].second > found[0].first
    assert found[2].second < found[2].first


def test_equally_good_systems_do_not_differ_significantly():
    mixed, other = [*GOOD], [*WORSE]
    mixed[1::2], other[1::2] = WORSE[1::2], GOOD[1::2]
    bleu, *_ = paired_test(mixed, other, REFERENCES, samples=200)
    assert bleu.p_value > 0.05
    assert bleu.first_interval > 0 and bleu.second_interval > 0


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1, 3, 6])
def test_p_value_of_few_differences_is_exact(others):
    # All n differences have the same sign: of the 2 ** n swaps, two give a
    # difference as large, one of each sign.
    second = WORSE[:others] + GOOD[others:]
    found = paired_test(GOOD, second, REFERENCES, samples=2000)
    for score in found:
        expected = min(1, 2 / 2**others)
        assert score.p_value == pytest.approx(expected, abs=0.04)
    assert found == paired_test(GOOD, second, REFERENCES, samples=2000)


def test_p_value_does_not_depend_on_the_order_of_systems():
    one = paired_test(GOOD, WORSE[:9] + GOOD[9:], REFERENCES, samples=500)
    other = paired_test(WORSE[:9] + GOOD[9:], GOOD, REFERENCES, samples=500)
    for score, turned in zip(one, other, strict=True):
        assert score.p_value == pytest.approx(turned.p_value)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: paired_test(GOOD, GOOD, REFERENCES, samples=0),
            "`samples` must be an integer and at least 1",
        ),
        (
            lambda: corpus_bleu(["a"], ["a"], "13A"),
            r"one of \('13a', 'char.*'13A'",
        ),
        (lambda: paired_test(*[["a"]] * 3, tokenize="x"), "tokenize='x'"),
        (lambda: translation_score(["a"], ["a"], "bleu"), "metric='bleu'"),
        (lambda: paired_test(GOOD, ["one"], REFERENCES), "1 and 40"),
        (lambda: corpus_bleu(["a"], [[]]), "at least one. Received: 0"),
    ],
)
def test_unknown_names_and_absent_references_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_only_bleu_needs_the_packages_of_its_tokenizer(monkeypatch):
    monkeypatch.setitem(sys.modules, "mecab_ko", None)
    with pytest.raises((ImportError, RuntimeError)):
        translation_score(GOOD, REFERENCES, "BLEU", tokenize="ko-mecab")
    found = translation_score(GOOD, REFERENCES, "chrF", tokenize="ko-mecab")
    assert found == translation_score(GOOD, REFERENCES, "chrF")


@pytest.mark.parametrize(
    "module, call",
    [
        ("sacrebleu.metrics.bleu", lambda: corpus_bleu(["a"], ["a"])),
        ("sacrebleu.significance", lambda: paired_test(*[["a"]] * 3)),
        ("matplotlib.figure", lambda: plot_alignment("a", "x", [[1]], "a.png")),
    ],
)
def test_missing_packages_name_the_pip_command(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"install 'luong-keras\[train\]'"):
        call()
