"""The word-for-word baseline."""

from luong_keras.data.phrasebook import SentencePair
from luong_keras.evaluation.word_for_word import (
    translate_word_for_word,
    word_for_word,
)


def _pair(source: str, target: str, *sure: tuple[int, int]) -> SentencePair:
    tokens = tuple(source.split()), tuple(target.split())
    return SentencePair(source, target, *tokens, sure, ((0, 0),))


def test_most_frequent_translation_wins():
    pairs = [
        _pair("the red door", "die rote Tür", (0, 0), (1, 1), (2, 2)),
        _pair("the red car", "das rote Auto", (0, 0), (1, 1), (2, 2)),
        _pair("car the", "das Auto", (0, 1), (1, 0)),
    ]
    dictionary = word_for_word(pairs)
    assert dictionary == {
        "the": "das",
        "red": "rote",
        "door": "Tür",
        "car": "Auto",
    }


def test_ties_and_unlinked_words():
    pairs = [_pair("a b", "z", (0, 0)), _pair("a b", "y", (0, 0))]
    assert word_for_word(pairs) == {"a": "y"}
    assert translate_word_for_word(["b", "a"], {"a": "y"}) == ["b", "y"]
