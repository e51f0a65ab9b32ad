"""BLEU scores, signatures and errors."""

import math

import pytest

from luong_keras.evaluation.translation_scores import corpus_bleu


def test_hand_computed_score():
    # 5 of 6 words match, 3 of 5 bigrams, 2 of 4 trigrams and 1 of 3 4-grams;
    # no brevity penalty.
    bleu = corpus_bleu(["a b c d x e"], ["a b c d y e"], tokenize="none")
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu.score == pytest.approx(100 * expected)


def test_brevity_penalty():
    bleu = corpus_bleu(["a b c d"], ["a b c d e"], tokenize="none")
    assert bleu.score == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_counts_are_summed_over_the_corpus():
    together = corpus_bleu(["a b c d e", "f"], ["a b c d e", "g"], "none")
    expected = (5 / 6) ** 0.25
    assert together.score == pytest.approx(100 * expected)


def test_raw_text_is_tokenised():
    hypotheses, references = ["Ja, das ist gut ."], ["Ja, das ist gut."]
    assert corpus_bleu(hypotheses, references).score == pytest.approx(100)
    assert corpus_bleu(hypotheses, references, "none").score < 90


@pytest.mark.parametrize(
    ("lowercase", "tokenize", "parts"),
    [
        (False, "13a", ("case:mixed", "tok:13a")),
        (True, "intl", ("case:lc", "tok:intl")),
    ],
)
def test_options_reach_score_and_signature(lowercase, tokenize, parts):
    bleu = corpus_bleu(
        ["das IST ein Test"], ["Das ist ein Test"], tokenize, lowercase
    )
    assert (bleu.score > 99) is lowercase
    assert set(parts) < set(bleu.signature.split("|"))


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
