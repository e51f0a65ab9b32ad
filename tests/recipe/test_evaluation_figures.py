"""Scores of an evaluation, computed from fixed answers of a translator."""

import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from luong_keras.config import DataConfig, DecodingConfig
from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras.recipe.evaluation import Evaluation, text_scores
from tests.layer_checks import preprocessing

PLAIN = DataConfig(dataset="phrasebook")


class Answers:
    """Replacement of a `Translator` that returns fixed answers.

    Args:
        translations: (running text, tokens) of the best translations.
        scores: Results of `score`.
        step: The alignment step.
    """

    def __init__(self, translations=(), scores=(), step="produces"):
        self.decoding = DecodingConfig(alignment_step=step)
        self.translations, self.scores = translations, scores
        self.inputs = []

    def best_by_place(self, sources, advance):
        self.inputs.append(list(sources))
        for place, (text, words) in enumerate(self.translations):
            tokens = words.split()
            yield place, Translation(text, 0.0, tokens, [], np.eye(1), [])

    def join(self, tokens):
        return [" ".join(words) for words in tokens]

    def scored_by_place(self, sources, targets, advance):
        self.inputs.append((list(sources), list(targets)))
        yield from enumerate(self.scores)


def evaluation(translator, **data):
    data = {"source_language": "en", "target_language": "de", **data}
    return Evaluation(translator, dataclasses.replace(PLAIN, **data))


SOURCE, REFERENCE = "It’s, A dog.", "Ein „Hund“, ja."
# Translations as running text and as tokens, by the settings.
TRANSLATIONS = {
    "---": (REFERENCE, REFERENCE),
    "l--": ("ein „hund“, ja.", "ein „hund“, ja."),
    "-n-": ('Ein "Hund", ja.', 'Ein "Hund", ja.'),
    "--t": ("Ein „Hund“, ja.", "Ein „ Hund “ , ja ."),
    "lnt": ('ein "hund", ja.', 'ein " hund " , ja .'),
}


@pytest.mark.parametrize("settings", list(TRANSLATIONS))
def test_the_translator_gets_each_text_once_without_preprocessing(settings):
    scored = ScoredTranslation(-1.0, ["x"], np.zeros(1), [], np.zeros((1, 0)))
    answers = Answers([TRANSLATIONS[settings]], [scored])
    measured = evaluation(answers, **preprocessing(settings))
    scores, translations = measured.scores([SOURCE], [REFERENCE])
    pairs = [(SOURCE, REFERENCE)]
    forced = measured.forced(pairs)
    measured.perplexity(forced)
    measured.alignment_error_rate(forced, pairs, ["0-0"])
    assert answers.inputs == [[SOURCE], ([SOURCE], [REFERENCE])]
    assert translations == [TRANSLATIONS[settings][0]]
    # The tokens equal the preprocessed reference.
    assert scores["bleu_tokenized"]["score"] == pytest.approx(100)
    # Without lower-casing and normalisation, the running text is equal too.
    exact = settings in ("---", "--t")
    assert (scores["bleu"]["score"] > 99.99) == exact


RUNNING, TOKENIZED = "l'homme qu'il voit", "l' homme qu' il voit"


@pytest.mark.parametrize(
    ("target", "tokenize", "words", "reference", "equal"),
    [
        # An apostrophe is part of the word in French, and a token in German.
        ("fr", True, TOKENIZED, RUNNING, True),
        ("de", True, TOKENIZED, RUNNING, False),
        ("fr", False, RUNNING, TOKENIZED, False),
        ("de", False, RUNNING, TOKENIZED, True),
    ],
)
def test_references_are_preprocessed_by_their_language(
    target, tokenize, words, reference, equal
):
    measured = evaluation(
        Answers([(RUNNING, words)]),
        source_language={"fr": "de", "de": "fr"}[target],
        target_language=target,
        tokenize=tokenize,
    )
    scores, _ = measured.scores(["the man he sees"], [reference])
    assert (scores["bleu_tokenized"]["score"] > 99.99) == equal


def test_tokens_of_tokenised_text_are_not_tokenised_again():
    data = DataConfig(tokenizer="words", pretokenized=True)
    scores = text_scores(["x"], ["a ,b c d e f"], ["a , b c d e f"], data)
    assert scores["bleu_tokenized"] == scores["bleu"]
    assert scores["bleu"]["score"] < 99


def bleus(scores):
    return {
        name: round(scores[name]["score"])
        for name in ("bleu", "bleu_lowercase", "bleu_tokenized")
    }


CASED, LOWER = "Ein Hund sieht Das Haus .", "ein hund sieht das haus ."
TEXT, TOKENS = "Ein Hund, ein Haus.", "Ein Hund , ein Haus ."
SMALL, SMALL_TOKENS = TEXT.lower(), TOKENS.lower()
QUOTED, CURLY = 'Er sagt "Hund" zu ihm .', "Er sagt „Hund“ zu ihm ."
FINE, FINE_TOKENS = "it's fine, no doubt.", "it 's fine , no doubt ."


@pytest.mark.parametrize(
    # `text` and `words` are the running text and the tokens of a translation.
    ("settings", "target", "text", "words", "reference", "expected", "group"),
    [
        ("---", "de", CASED, CASED, CASED, (100, 100, 100), 100),
        # Only two of six words match, and no longer n-gram.
        ("---", "de", LOWER, LOWER, CASED, (None, 100, None), None),
        # A run on lower-cased text loses the case.
        ("l--", "de", LOWER, LOWER, CASED, (None, 100, 100), 100),
        # the same text, spaced differently
        ("---", "de", TEXT, TEXT, TOKENS, (100, 100, 100), 100),
        ("--t", "de", TEXT, TOKENS, TEXT, (100, 100, 100), 100),
        ("l-t", "de", SMALL, SMALL_TOKENS, TEXT, (None, 100, 100), 100),
        ("l-t", None, SMALL, SMALL_TOKENS, TEXT, (None, 100, 100), 100),
        # 13a keeps "it's", which the tokens split.
        ("--t", "en", FINE, FINE_TOKENS, FINE, (100, 100, 100), 100),
        # Each form of BLEU depends either on the text or on the tokens.
        ("--t", "de", CASED, "x", CASED, (100, 100, None), 100),
        ("--t", "de", "x", CASED, CASED, (None, None, 100), None),
        ("---", "de", CASED, "x", CASED, (100, 100, 100), 100),
        # Tokenising these tokens again would split the apostrophes off.
        ("--t", "en", "x", FINE_TOKENS, FINE, (None, None, 100), None),
        ("---", "de", QUOTED, QUOTED, CURLY, (None, None, None), None),
        ("-n-", "de", QUOTED, QUOTED, CURLY, (None, None, 100), None),
    ],
)
def test_all_forms_of_bleu(
    settings, target, text, words, reference, expected, group
):
    sources = ["one two three", " ".join(["word"] * 11)]
    languages = {"source_language": target and "en", "target_language": target}
    answers = Answers([(text, words)] * 2)
    measured = evaluation(answers, **languages, **preprocessing(settings))
    scores, translations = measured.scores(sources, [reference] * 2)
    assert translations == [text] * 2
    found = bleus(scores)
    for (name, bleu), value in zip(found.items(), expected, strict=True):
        assert bleu == value if value else bleu < 70, name
    groups = scores["bleu_by_length"]
    sizes = [(g["low"], g["high"], g["sentences"]) for g in groups]
    assert sizes == [(0, 10, 1), (11, 20, 1)]
    for found in groups:
        bleu = found["bleu"]
        assert bleu == pytest.approx(100) if group else bleu < 70
    assert [g["mean_length"] for g in groups] == [3, 11]
    assert scores["sentences"] == 2
    parts = r"case:mixed.*tok:13a", r"case:lc.*tok:13a", "tok:none"
    for name, part in zip(bleus(scores), parts, strict=True):
        assert re.search(part, scores[name]["signature"])


def test_pretokenised_text_is_scored_without_tokenisation():
    data = dataclasses.replace(PLAIN, pretokenized=True, target_language="zh")
    # 13a would split both lines into the same tokens; Moses would join them.
    line, split = "a,b c d @-@ z.B. <unk> .", "a , b c d @-@ z . B . < unk > ."
    for answer, equal in ((line, True), (split, False)):
        answers = Answers([(answer, answer)])
        measured = Evaluation(answers, data, ["bleu:none"])
        scores, translations = measured.scores(["x y"], [line])
        assert translations == [answer]
        for name in bleus(scores):
            found = scores[name]["score"]
            assert found == pytest.approx(100) if equal else found < 50
            assert "tok:none" in scores[name]["signature"]
        found = scores["bleu_by_length"][0]["bleu"]
        assert found == pytest.approx(100) if equal else found < 50
        assert not [name for name in scores if name.startswith("bleu:")]


def test_perplexity_counts_all_tokens_and_the_end():
    def scored(log_probability, tokens):
        rows = np.zeros(len(tokens))
        return ScoredTranslation(
            log_probability, tokens, rows, ["a"] * 9, np.zeros((len(rows), 9))
        )

    scores = [scored(-6.0, ["x", "y", "</s>"]), scored(-1.0, ["</s>"])]
    answers = Answers(scores=scores)
    measured = evaluation(answers)
    found = measured.perplexity(measured.forced([("a b", "x y"), ("c", "")]))
    assert found == pytest.approx(math.exp(7 / 4), rel=1e-12)
    assert answers.inputs == [(["a b", "c"], ["x y", ""])]


@pytest.mark.parametrize(
    ("step", "links", "rate"),
    [
        # The rows are of the steps that produce x, y and </s>.
        ("produces", "0-0 1-1", 0.0),
        ("produces", "1-0 2-1", 1.0),
        ("produces", "0-0 1p0", 1 - (1 + 1) / (2 + 1)),
        ("reads", "1-0 2-1", 0.0),
        ("reads", "0-0 1-1", 1.0),
        # A possible link counts once, a sure one twice.
        ("reads", "1-0 2p1", 0.0),
        ("reads", "1p0 2p1 0-0", 1 - (0 + 2) / (2 + 1)),
    ],
)
def test_alignment_error_rate_for_both_alignment_steps(step, links, rate):
    # The last row is of the step that reads the last token.
    scored = ScoredTranslation(
        -1.0, ["x", "y", "</s>"], np.zeros(3), ["a", "b", "c"], np.eye(3)
    )
    measured = evaluation(Answers(scores=[scored], step=step))
    pairs = [("a b c", "x y")]
    forced = measured.forced(pairs)
    found = measured.alignment_error_rate(forced, pairs, [links])
    assert found == pytest.approx(rate)


@pytest.mark.parametrize("has_attention", [True, False])
def test_only_attention_has_an_alignment_error_rate(has_attention):
    scored = ScoredTranslation(-1.0, ["x"], np.zeros(1), ["a"], np.ones((1, 1)))
    answers = Answers([("x", "x")], [scored])
    answers.translation_model = SimpleNamespace(has_attention=has_attention)
    scores, _ = evaluation(answers).all_scores([("a", "x")], ["x"], ["0-0"])
    assert ("aer" in scores) == has_attention


def test_alignment_error_rate_of_subwords_counts_words():
    tokens = ["\u2581Die", "\u2581Tepp", "iche", ".", "</s>"]
    source_tokens = ["\u2581The", "\u2581car", "pets", "."]
    scored = ScoredTranslation(
        -1.0, tokens, np.zeros(5), source_tokens, np.eye(5, 4)
    )
    found = evaluation(Answers(scores=[scored]), tokenizer="sentencepiece")
    pairs = [("The carpets.", "Die Teppiche.")]
    forced = found.forced(pairs)
    assert found.alignment_error_rate(forced, pairs, ["0-0 1-1 2-2"]) == 0
    assert found.alignment_error_rate(forced, pairs, ["0-0 1-1 3-3"]) > 0
