"""The figures of an evaluation, from answers that were written by hand."""

import dataclasses
import math

import numpy as np
import pytest

from luong_keras.config import DataConfig, DecodingConfig
from luong_keras.inference.translation import ScoredTranslation
from luong_keras.recipe.evaluation import Evaluation, preprocessor

PLAIN = DataConfig(dataset="phrasebook")


class Answers:
    """Stands in for a `Translator` and notes what it is asked."""

    def __init__(self, translations=(), scores=(), weights=(), step="produces"):
        self.decoding = DecodingConfig(alignment_step=step)
        self.translations, self.scores = translations, scores
        self.weights, self.asked = weights, []

    def translate(self, sources):
        self.asked.append(list(sources))
        return list(self.translations)

    def score(self, sources, targets):
        self.asked.append((list(sources), list(targets)))
        return list(self.scores)

    def alignments(self, sources, targets, with_end=False):
        self.asked.append((list(sources), list(targets)))
        return [w if with_end else w[:-1] for w in self.weights]


def evaluation(translator, **data):
    data = {"source_language": "en", "target_language": "de", **data}
    return Evaluation(translator, dataclasses.replace(PLAIN, **data))


# With `-` for a setting that is off: lower-casing, punctuation, words.
PREPARED = {
    "---": ("It’s, A dog.", "Ein „Hund“, ja."),
    "l--": ("it’s, a dog.", "ein „hund“, ja."),
    "-n-": ("It's, A dog.", 'Ein "Hund", ja.'),
    "--t": ("It ’ s , A dog .", "Ein „ Hund “ , ja ."),
    "lnt": ("it 's , a dog .", 'ein " hund " , ja .'),
}


@pytest.mark.parametrize("settings", list(PREPARED))
def test_each_setting_prepares_both_sides_once(settings):
    sources, references = [PREPARED["---"][0]], [PREPARED["---"][1]]
    data = dict(
        zip(
            ("lowercase", "normalize_punctuation", "tokenize"),
            (letter != "-" for letter in settings),
            strict=True,
        )
    )
    source, reference = PREPARED[settings]
    scored = ScoredTranslation(-1.0, ["x"], np.zeros(1), [], np.zeros((1, 0)))
    answers = Answers([reference], [scored], [np.eye(2)])
    measured = evaluation(answers, **data)
    scores, translations = measured.scores(sources, references)
    pairs = [(sources[0], references[0])]
    measured.perplexity(pairs)
    measured.alignment_error_rate(pairs, ["0-0"])
    assert answers.asked == [[source]] + [([source], [reference])] * 2
    # What was tokenised is put together; nothing else is put back.
    assert translations == [
        {
            "--t": "Ein „Hund“, ja.",
            "lnt": 'ein "hund", ja.',
        }.get(settings, reference)
    ]
    # An answer that is the prepared reference is all right.
    assert scores["bleu_tokenized"]["score"] == pytest.approx(100)
    assert scores["bleu"]["score"] == pytest.approx(100) or settings != "---"


def test_each_language_has_its_own_preparation():
    data = dataclasses.replace(
        PLAIN, source_language="de", target_language="fr", tokenize=True
    )
    assert preprocessor(data, "fr").language == "fr"
    measured = Evaluation(Answers(), data)
    # French leaves an apostrophe with the word before it.
    text = ["l'homme"]
    assert measured.prepare(text) == ["l ' homme"]
    assert measured.prepare_references(text) == ["l' homme"]
    assert measured.finish(["l' homme"]) == text


def bleus(scores):
    return {
        name: round(scores[name]["score"])
        for name in ("bleu", "bleu_lowercase", "bleu_tokenized")
    }


CASED, LOWER = "Ein Hund sieht Das Haus .", "ein hund sieht das haus ."


@pytest.mark.parametrize(
    ("settings", "translation", "reference", "expected", "group"),
    [
        ({}, CASED, CASED, (100, 100, 100), 100),
        # Only the last two of six words are right: no four, and no three.
        ({}, LOWER, CASED, (None, 100, None), None),
        # A run on lower-cased text cannot have the case right.
        ({"lowercase": True}, LOWER, CASED, (None, 100, 100), 100),
        # The same text in another form.
        ({}, "Ein Hund, ein Haus.", "Ein Hund , ein Haus .", (100,) * 3, 100),
        (
            {"tokenize": True},
            "Ein Hund , ein Haus .",
            "Ein Hund, ein Haus.",
            (100,) * 3,
            100,
        ),
        (
            {"tokenize": True, "lowercase": True},
            "ein hund , ein haus .",
            "Ein Hund, ein Haus.",
            (None, 100, 100),
            100,
        ),
        # What 13a leaves together was apart before.
        (
            {"tokenize": True, "target_language": "en"},
            "it 's fine , no doubt .",
            "it's fine, no doubt.",
            (100,) * 3,
            100,
        ),
        (
            {},
            'Er sagt "Hund" zu ihm .',
            "Er sagt „Hund“ zu ihm .",
            (None, None, None),
            None,
        ),
        (
            {"normalize_punctuation": True},
            'Er sagt "Hund" zu ihm .',
            "Er sagt „Hund“ zu ihm .",
            (None, None, 100),
            None,
        ),
    ],
)
def test_every_form_of_bleu(settings, translation, reference, expected, group):
    answers = Answers([translation] * 2)
    sources = ["one two three", " ".join(["word"] * 11)]
    scores, _ = evaluation(answers, **settings).scores(sources, [reference] * 2)
    for (name, found), value in zip(
        bleus(scores).items(), expected, strict=True
    ):
        assert found == value if value else found < 70, name
    groups = scores["bleu_by_length"]
    assert [(g["low"], g["high"], g["sentences"]) for g in groups] == [
        (0, 10, 1),
        (11, 20, 1),
    ]
    for found in groups:
        bleu = found["bleu"]
        assert bleu == pytest.approx(100) if group else bleu < 70
    assert [g["mean_length"] for g in groups] == [3, 11]
    assert scores["sentences"] == 2
    signatures = [scores[name]["signature"] for name in bleus(scores)]
    for signature, parts in zip(
        signatures,
        (("case:mixed", "tok:13a"), ("case:lc", "tok:13a"), ("tok:none",)),
        strict=True,
    ):
        assert all(part in signature for part in parts)


def test_perplexity_counts_every_word_and_the_end():
    def scored(log_probability, tokens):
        rows = np.zeros(len(tokens))
        return ScoredTranslation(
            log_probability, tokens, rows, ["a"] * 9, np.zeros((len(rows), 9))
        )

    answers = Answers(
        scores=[scored(-6.0, ["x", "y", "</s>"]), scored(-1.0, ["</s>"])]
    )
    found = evaluation(answers).perplexity([("a b", "x y"), ("c", "")])
    assert found == pytest.approx(math.exp(7 / 4), rel=1e-12)
    assert answers.asked == [(["a b", "c"], ["x y", ""])]


@pytest.mark.parametrize(
    ("step", "links", "rate"),
    [
        # Rows of the steps that produce x, y and </s>.
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
def test_alignment_errors_of_both_steps(step, links, rate):
    answers = Answers(weights=[np.eye(3)], step=step)
    found = evaluation(answers).alignment_error_rate(
        [("a b c", "x y")], [links]
    )
    assert found == pytest.approx(rate)
