"""The figures of an evaluation, from answers that were written by hand."""

import dataclasses
import math

import numpy as np
import pytest

from luong_keras.config import DataConfig, DecodingConfig
from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras.recipe.evaluation import Evaluation

PLAIN = DataConfig(dataset="phrasebook")


class Answers:
    """Stands in for a `Translator` and notes what it is asked.

    Args:
        translations: (running text, prepared text) of the best translations.
        scores: what `score` answers.
        weights: what `alignments` answers, with the row of the end.
        step: the alignment step.
    """

    def __init__(self, translations=(), scores=(), weights=(), step="produces"):
        self.decoding = DecodingConfig(alignment_step=step)
        self.translations, self.scores = translations, scores
        self.weights, self.asked = weights, []

    def nbest(self, sources, advance):
        self.asked.append(list(sources))
        second = Translation("worse", -9.0, ["worse"], [], np.eye(1), [])
        return [
            [Translation(text, 0.0, words.split(), [], np.eye(1), []), second]
            for text, words in self.translations
        ]

    def join(self, tokens):
        return [" ".join(words) for words in tokens]

    def score(self, sources, targets, advance):
        self.asked.append((list(sources), list(targets)))
        return list(self.scores)

    def alignments(self, sources, targets, with_end=False, *, advance):
        self.asked.append((list(sources), list(targets)))
        return [w if with_end else w[:-1] for w in self.weights]


def evaluation(translator, **data):
    data = {"source_language": "en", "target_language": "de", **data}
    return Evaluation(translator, dataclasses.replace(PLAIN, **data))


SOURCE, REFERENCE = "It’s, A dog.", "Ein „Hund“, ja."
# With `-` for a setting that is off, lower-casing, punctuation, words: what a
# translator of such text answers, running and prepared.
ANSWERED = {
    "---": (REFERENCE, REFERENCE),
    "l--": ("ein „hund“, ja.", "ein „hund“, ja."),
    "-n-": ('Ein "Hund", ja.', 'Ein "Hund", ja.'),
    "--t": ("Ein „Hund“, ja.", "Ein „ Hund “ , ja ."),
    "lnt": ('ein "hund", ja.', 'ein " hund " , ja .'),
}


@pytest.mark.parametrize("settings", list(ANSWERED))
def test_the_translator_is_asked_once_as_people_write(settings):
    data = dict(
        zip(
            ("lowercase", "normalize_punctuation", "tokenize"),
            (letter != "-" for letter in settings),
            strict=True,
        )
    )
    scored = ScoredTranslation(-1.0, ["x"], np.zeros(1), [], np.zeros((1, 0)))
    answers = Answers([ANSWERED[settings]], [scored], [np.eye(2)])
    measured = evaluation(answers, **data)
    scores, translations = measured.scores([SOURCE], [REFERENCE])
    pairs = [(SOURCE, REFERENCE)]
    measured.perplexity(pairs)
    measured.alignment_error_rate(pairs, ["0-0"])
    assert answers.asked == [[SOURCE]] + [([SOURCE], [REFERENCE])] * 2
    assert translations == [ANSWERED[settings][0]]
    # An answer that is the prepared reference is all right.
    assert scores["bleu_tokenized"]["score"] == pytest.approx(100)
    # Where nothing is lost, running text is all right as well.
    exact = settings in ("---", "--t")
    assert (scores["bleu"]["score"] > 99.99) == exact


RUNNING, APART = "l'homme qu'il voit", "l' homme qu' il voit"


@pytest.mark.parametrize(
    ("target", "settings", "translation", "reference", "right"),
    [
        # French leaves an apostrophe with the word before it, German alone.
        ("fr", {"tokenize": True}, (RUNNING, APART), RUNNING, True),
        ("de", {"tokenize": True}, (RUNNING, APART), RUNNING, False),
        ("fr", {}, (RUNNING, RUNNING), APART, False),
        ("de", {}, (RUNNING, RUNNING), APART, True),
    ],
)
def test_references_are_prepared_in_their_language(
    target, settings, translation, reference, right
):
    source = {"fr": "de", "de": "fr"}[target]
    measured = evaluation(
        Answers([translation]),
        source_language=source,
        target_language=target,
        **settings,
    )
    scores, _ = measured.scores(["the man he sees"], [reference])
    assert (scores["bleu_tokenized"]["score"] > 99.99) == right


def bleus(scores):
    return {
        name: round(scores[name]["score"])
        for name in ("bleu", "bleu_lowercase", "bleu_tokenized")
    }


CASED, LOWER = "Ein Hund sieht Das Haus .", "ein hund sieht das haus ."


@pytest.mark.parametrize(
    # Of the translation, the text and its words set apart.
    ("settings", "text", "words", "reference", "expected", "group"),
    [
        ({}, CASED, CASED, CASED, (100, 100, 100), 100),
        # Only the last two of six words are right: no four, and no three.
        ({}, LOWER, LOWER, CASED, (None, 100, None), None),
        # A run on lower-cased text cannot have the case right.
        ({"lowercase": True}, LOWER, LOWER, CASED, (None, 100, 100), 100),
        # The same text in another form.
        (
            {},
            "Ein Hund, ein Haus.",
            "Ein Hund, ein Haus.",
            "Ein Hund , ein Haus .",
            (100,) * 3,
            100,
        ),
        (
            {"tokenize": True},
            "Ein Hund, ein Haus.",
            "Ein Hund , ein Haus .",
            "Ein Hund, ein Haus.",
            (100,) * 3,
            100,
        ),
        (
            {"tokenize": True, "lowercase": True},
            "ein hund, ein haus.",
            "ein hund , ein haus .",
            "Ein Hund, ein Haus.",
            (None, 100, 100),
            100,
        ),
        # What 13a leaves together was apart before.
        (
            {"tokenize": True, "target_language": "en"},
            "it's fine, no doubt.",
            "it 's fine , no doubt .",
            "it's fine, no doubt.",
            (100,) * 3,
            100,
        ),
        # Text and words count where each is asked for, and not elsewhere.
        ({"tokenize": True}, CASED, "x", CASED, (100, 100, None), 100),
        ({"tokenize": True}, "x", CASED, CASED, (None, None, 100), None),
        ({}, CASED, "x", CASED, (100, 100, 100), 100),
        # Set apart already: an apostrophe would be set apart again.
        (
            {"tokenize": True, "target_language": "en"},
            "x",
            "it 's fine isn 't it",
            "it's fine isn't it",
            (None, None, 100),
            None,
        ),
        (
            {},
            'Er sagt "Hund" zu ihm .',
            'Er sagt "Hund" zu ihm .',
            "Er sagt „Hund“ zu ihm .",
            (None, None, None),
            None,
        ),
        (
            {"normalize_punctuation": True},
            'Er sagt "Hund" zu ihm .',
            'Er sagt "Hund" zu ihm .',
            "Er sagt „Hund“ zu ihm .",
            (None, None, 100),
            None,
        ),
    ],
)
def test_every_form_of_bleu(settings, text, words, reference, expected, group):
    answers = Answers([(text, words)] * 2)
    sources = ["one two three", " ".join(["word"] * 11)]
    measured = evaluation(answers, **settings)
    scores, translations = measured.scores(sources, [reference] * 2)
    assert translations == [text] * 2
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
