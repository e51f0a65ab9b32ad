"""Moses preprocessing."""

import sys

import pytest

from luong_keras.text.preprocessing import Preprocessor


def test_steps_are_applied_as_chosen():
    text = "Die „Maus“ (z.B.  A&B-C), 3,5 %!"
    only_lower = Preprocessor("de", True, False, False)
    assert only_lower(text) == text.lower()
    prepared = Preprocessor("de", lowercase=True)(text)
    assert prepared == 'die " maus " ( z.b. a & b-c ) , 3,5 % !'


def test_postprocess_attaches_punctuation():
    prepare = Preprocessor("en")
    sentence = 'He said, "it\'s a well-known A & B (really)!"'
    assert prepare.postprocess(prepare(sentence)) == sentence
    untouched = Preprocessor("en", tokenize=False)
    assert untouched.postprocess("a , b") == "a , b"


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ImportError, match=r"luong-keras\[train\]"):
        Preprocessor("fr")
