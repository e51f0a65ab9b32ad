"""Word links of given translations, and the words of tokens."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.alignment.aer import best_links
from luong_keras.config import AttentionConfig
from luong_keras.inference import word_links
from luong_keras.inference.translation import ScoredTranslation
from luong_keras.inference.word_links import nearest_word_positions
from luong_keras.text.preprocessing import Preprocessor
from luong_keras.truncation import TruncationWarning
from tests.inference.option_tensors import option_tensors
from tests.inference.variants import variant_of
from tests.serving.tiny_translator import tiny_translator

pytestmark = pytest.mark.usefixtures("eager")
SOURCES = ["the cat sees a dog .", "a house .", "the dog sees the cat .", "a"]
TARGETS = ["die Katze sieht einen Hund .", "das Haus .", "Hund sieht", "das"]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(batch_size=2)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["produces", "reads"])
def test_links_of_word_tokens(translator, step):
    found = translator.links(SOURCES, TARGETS, step)
    scored = translator.score(SOURCES, TARGETS)
    for links, one in zip(found, scored, strict=True):
        matrix = one.alignments
        best = best_links(matrix, matrix.shape[1], len(matrix) - 1, step)
        assert links == sorted(best) and links
    one = tiny_translator(alignment_step=step)
    assert one.links(SOURCES, TARGETS) == found
    given = [[text.encode() for text in side] for side in (SOURCES, TARGETS)]
    assert translator.links(*given, step) == found


@pytest.mark.slow
def test_unknown_alignment_step_is_refused(translator):
    with pytest.raises(ValueError, match="one of .'produces', 'reads'"):
        translator.links(["a"], ["das"], "writes")


@pytest.mark.slow
def test_links_refer_to_the_words_before_preprocessing(translator):
    moses = {"lowercase": False, "normalize_punctuation": True}
    parts = {
        "source_preprocessor": Preprocessor("en", **moses),
        "target_preprocessor": Preprocessor("de", **moses),
    }
    prepared = variant_of(translator, parts=parts)
    # Links of the prepared words, and of the given words.
    (plain,) = translator.links(['the " cat " .'], ['die " Katze " sieht .'])
    (links,) = prepared.links(["the “cat”."], ["die „Katze“ sieht."])
    source, target = [0, 1, 1, 1, 1], [0, 1, 1, 1, 2, 2]
    assert links == sorted({(source[i], target[j]) for i, j in plain})


def test_words_have_the_links_of_their_subwords():
    weights = np.array([[0.9, 0, 0.1], [0, 0.6, 0.4], [0.1, 0, 0.9], [1, 0, 0]])
    scored = ScoredTranslation(
        -1.0,
        ["\u2581Haus", "tür", "\u2581zu", "</s>"],
        np.full(4, -0.25),
        ["\u2581front", "\u2581do", "or"],
        weights,
    )
    pair = "front door", "Haustür zu"
    found = word_links.links_of_words(scored, *pair, "produces")
    assert found == {(0, 0), (1, 0), (1, 1)}
    found = word_links.links_of_words(scored, *pair, "reads")
    assert found == {(1, 0), (0, 1)}


def test_words_beyond_the_limit_have_no_links():
    translator = tiny_translator(max_source_length=2)
    long, short = word_links.aligned_pairs(
        translator, ["the cat sees", "a"], ["die Katze sieht einen", "das"]
    )
    assert long.truncated and not short.truncated
    assert {j for _, j in long.links} == {0, 1}
    assert {i for i, _ in long.links} <= {0, 1}


@pytest.mark.slow
def test_calls_warn_once_of_pairs_that_were_cut():
    align = tiny_translator(max_source_length=2, batch_size=1).links
    expected = "2 pairs .place 0, 2. were cut"
    with pytest.warns(TruncationWarning, match=expected) as caught:
        align(["the cat sees", "a", "a"], ["die Katze", "das", "das Haus ist"])
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings(action="error"):
        align(["the cat"], ["die Katze"])


def test_empty_texts_have_no_links(translator):
    assert translator.links([], []) == []
    assert translator.links(["", "a", " "], ["das", "", ""]) == [[], [], []]
    with pytest.raises(ValueError, match="Received: 0 and 1"):
        translator.links(["a"], [])


def test_models_without_attention_are_refused():
    translator = tiny_translator(attention=AttentionConfig(kind="none"))
    with pytest.raises(ValueError, match="without attention has no alignme"):
        translator.links(["a"], ["das"])
    message = "without attention has no alignments, which `coverage_penalty`"
    with pytest.raises(ValueError, match=message):
        translator.translate(["a"], coverage_penalty=[0.2])
    assert translator.translate(["a"], coverage_penalty=0.0)
    # An export does not check options, and a penalty has nothing to count.
    found = [
        translator.translate_batch(
            tf.constant(["a"]), option_tensors(1, coverage_penalty=penalty)
        )["scores"]
        for penalty in (0.0, 2.0)
    ]
    np.testing.assert_array_equal(*found)
    with pytest.raises(ValueError, match=message):
        tiny_translator(
            attention=AttentionConfig(kind="none"), coverage_penalty=0.2
        )


@pytest.mark.parametrize(
    "tokens, words, expected",
    [
        # Equal characters, split up or in another case.
        (["\u2581a", "bc", "\u2581d"], ["abc", "d"], [0, 0, 1]),
        (["\u2581", "ab", "\u2581", "c"], ["ab", "c"], [0, 0, 1, 1]),
        (["don", "'", "t", "!"], ["don't", "!"], [0, 0, 0, 1]),
        (["the", "house", "."], ["The", "House."], [0, 1, 1]),
        # Characters that sacremoses and SentencePiece replace.
        (['"', "a", '"', ",", "b"], ["„a“,", "b"], [0, 0, 0, 0, 1]),
        (["a", "...", "b"], ["a…", "b"], [0, 0, 1]),
        (["STRASSE", "fi", "1"], ["Straße", "ﬁ", "１"], [0, 1, 2]),
        (["a", "&", "b"], ["a", "&amp;", "b"], [0, 1, 2]),
        (["a", "b"], ["a", "\u200b", "b"], [0, 2]),
        # Letters that no normalisation makes equal.
        (["x", "abc", "y"], ["x", "def", "y"], [0, 1, 2]),
        # A token has the word of most of its characters.
        (["ab", "cde", "f"], ["abc", "def"], [0, 1, 1]),
        # Tokens that end at a limit, and tokens without a word.
        (["the", "cat"], ["the", "cat", "the", "cat"], [0, 1]),
        (["a", "b"], ["a"], [0, None]),
        (["a", "\u2581"], ["a"], [0, None]),
        ([], ["a"], []),
        (["a"], [], [None]),
        ([], [], []),
    ],
)
def test_prepared_tokens_belong_to_their_original_words(
    tokens, words, expected
):
    assert nearest_word_positions(tokens, words) == expected
