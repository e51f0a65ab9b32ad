import pytest

from luong_keras.alignment.word_positions import word_positions


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
