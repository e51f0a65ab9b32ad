import dataclasses
import sys

import pytest

from luong_keras.text.preprocessing import Preprocessor, moses_tools
from tests.layer_checks import preprocessing


def test_steps_are_applied_as_chosen():
    text = "Die „Maus“ (z.B.  A&B-C), 3,5 %!"
    only_lower = Preprocessor("de", True, False, False)
    assert only_lower(text) == text.lower()
    prepared = Preprocessor("de", lowercase=True)(text)
    assert prepared == 'die " maus " ( z.b. a & b-c ) , 3,5 % !'


def test_preprocessors_are_frozen_and_hashable():
    prepare = Preprocessor("de")
    with pytest.raises(dataclasses.FrozenInstanceError):
        prepare.language = "en"
    assert {prepare: "de"}[Preprocessor("de")] == "de"


TEXT = "It’s “A&B” Co., well-known"


@pytest.mark.parametrize(
    ("language", "settings", "expected"),
    [
        ("en", "---", TEXT),
        ("en", "l--", "it’s “a&b” co., well-known"),
        ("en", "-n-", 'It\'s "A&B" Co., well-known'),
        ("en", "--t", "It ’ s “ A & B ” Co . , well-known"),
        # German knows `Co.`, and leaves no apostrophe with its word.
        ("de", "--t", "It ’ s “ A & B ” Co. , well-known"),
        ("en", "-nt", 'It \'s " A & B " Co . , well-known'),
        ("de", "-nt", 'It \' s " A & B " Co. , well-known'),
        # Lower-cased first: `co.` is no abbreviation.
        ("de", "l-t", "it ’ s “ a & b ” co . , well-known"),
    ],
)
def test_each_step(language, settings, expected):
    prepare = Preprocessor(language, **preprocessing(settings))
    assert prepare(TEXT) == expected


@pytest.mark.parametrize(
    ("code", "language"),
    [("en-US", "en"), ("EN", "en"), ("fr_CA", "fr"), ("zh-Hant-TW", "zh")],
)
def test_countries_and_capitals_leave_the_rules_of_a_language(code, language):
    text = "It's l'eau « 5 % » of Mr. Co. (5)。"
    regional, plain = Preprocessor(code), Preprocessor(language)
    assert regional(text) == plain(text)
    words = "it 's l' eau 5 % 漢 字 ?"
    assert regional.postprocess(words) == plain.postprocess(words)


@pytest.mark.parametrize(
    ("language", "words", "text"),
    [
        ("en", "a &amp; b &lt; &#124; &quot;", "a &amp; b &lt; &#124; &quot;"),
        ("en", "it 's R & D , no ?", "it's R & D, no?"),
        # A language has its own rules.
        ("en", "l' homme", "l' homme"),
        ("fr", "l' homme", "l'homme"),
    ],
)
def test_words_are_joined_by_the_rules_of_the_language(language, words, text):
    assert Preprocessor(language).postprocess(words) == text


def test_markup_is_ordinary_text():
    # Characters do not become entities, nor entities characters.
    assert Preprocessor("en")("a < b & c &amp; d") == "a < b & c & amp ; d"


def test_postprocess_attaches_punctuation():
    prepare = Preprocessor("en")
    sentence = 'He said, "it\'s a well-known A & B (really)!"'
    assert prepare.postprocess(prepare(sentence)) == sentence
    untouched = Preprocessor("en", tokenize=False)
    assert untouched.postprocess("a , b") == "a , b"


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    moses_tools.cache_clear()
    with pytest.raises(ImportError, match=r"luong-keras\[train\]"):
        Preprocessor("cs")  # a language that is not cached
