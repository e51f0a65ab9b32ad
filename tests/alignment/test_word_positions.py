import pytest

from luong_keras.alignment.word_positions import (
    nearest_word_positions,
    word_positions,
)


@pytest.mark.parametrize(
    "tokens, words, expected",
    [
        (["\u2581a", "bc", "\u2581d"], ["abc", "d"], [0, 0, 1]),
        (["\u2581", "ab", "\u2581", "c"], ["ab", "c"], [0, 0, 1, 1]),
        (["don", "'", "t", "!"], ["don't", "!"], [0, 0, 0, 1]),
        (["x"], ["x"], [0]),
        ([], [], []),
    ],
)
def test_every_token_has_the_word_of_its_characters(tokens, words, expected):
    assert word_positions(tokens, words) == expected


def test_other_characters_are_an_error():
    with pytest.raises(ValueError, match="Received: '<unk> b' and 'a b'"):
        word_positions(["<unk>", "b"], ["a", "b"])


@pytest.mark.parametrize(
    "tokens, words, expected",
    [
        # As they stand there, set apart, or in another case.
        (["\u2581a", "bc", "\u2581d"], ["abc", "d"], [0, 0, 1]),
        (["\u2581", "ab", "\u2581", "c"], ["ab", "c"], [0, 0, 1, 1]),
        (["the", "house", "."], ["The", "House."], [0, 1, 1]),
        # What sacremoses and SentencePiece write for other characters.
        (['"', "a", '"', ",", "b"], ["„a“,", "b"], [0, 0, 0, 0, 1]),
        (["a", "...", "b"], ["a…", "b"], [0, 0, 1]),
        (["STRASSE", "fi", "1"], ["Straße", "ﬁ", "１"], [0, 1, 2]),
        (["a", "&", "b"], ["a", "&amp;", "b"], [0, 1, 2]),
        (["a", "b"], ["a", "\u200b", "b"], [0, 2]),
        # Letters that no normalisation makes equal.
        (["x", "abc", "y"], ["x", "def", "y"], [0, 1, 2]),
        # A token has the word of most of its characters.
        (["ab", "cde", "f"], ["abc", "def"], [0, 1, 1]),
        # The beginning of what was read up to a limit.
        (["the", "cat"], ["the", "cat", "the", "cat"], [0, 1]),
        (["a", "b"], ["a"], [0, None]),
        (["a", "\u2581"], ["a"], [0, None]),
        ([], ["a"], []),
        (["a"], [], [None]),
    ],
)
def test_prepared_tokens_have_the_word_they_came_from(tokens, words, expected):
    assert nearest_word_positions(tokens, words) == expected
