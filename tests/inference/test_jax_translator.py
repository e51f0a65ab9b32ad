"""Translations between the epochs of a training run on JAX."""

import keras
import numpy as np
import pytest

from luong_keras.config import AttentionConfig, DecodingConfig
from luong_keras.decoding.beam_search import greedy_search
from luong_keras.decoding.scorers import NoRepeatedNgrams
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.truncation import TruncationWarning
from tests.layer_checks import small_config

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="other backends have another translator",
)
SOURCE = WordTokenizer.from_words(["a", "b", "c", "d"])
TARGET = WordTokenizer.from_words(["x", "y", "z", "w"])
# Lines of both widths that the search is compiled for, and an empty line.
LINES = ["a b c", "d", "", "c c new a b", "b a", "d c b a " * 3]


@pytest.fixture
def model():
    keras.utils.set_random_seed(4)
    config = small_config(
        SOURCE.vocabulary_size,
        attention=AttentionConfig(kind="global"),
        output_bias=True,
        initial_range=1.5,
    )
    return TranslationModel(config)


def translator_of(model, **settings):
    limits = {"max_source_length": 9, "max_length_ratio": 1.5}
    decoding = DecodingConfig(beam_size=1, **limits | settings)
    return JaxTranslator(model, SOURCE, TARGET, decoding)


def one_by_one(model, decoding, scorers=()):
    """Translate each line by itself, without padding or compilation."""
    names = ["<pad>", "<unk>", "<s>", "</s>", "x", "y", "z", "w"]
    found = []
    for line in LINES:
        words = line.split()[: decoding.max_source_length]
        if not words:
            found.append("")
            continue
        ids = [{"a": 4, "b": 5, "c": 6, "d": 7}.get(word, 1) for word in words]
        memory, mask, states = model.encode(np.array([ids], "int32"))
        maximum = max(int((len(ids) + 1) * decoding.max_length_ratio), 2)
        best = greedy_search(
            model.decoding_step(memory, mask),
            states,
            maximum,
            min_lengths=int((len(ids) + 1) * decoding.min_length_ratio),
            scorers=scorers,
        )
        length = int(best.lengths[0, 0])
        weights = np.asarray(best.alignments)[0, 0]
        text = []
        for step, word in enumerate(np.asarray(best.ids)[0, 0, :length]):
            aligned = words[weights[step, : len(words)].argmax()]
            text.append(aligned if word == 1 else names[word])
        found.append(" ".join(text))
    return found


def test_batches_equal_searches_of_single_lines(model):
    translator = translator_of(model, batch_size=4, min_length_ratio=0.5)
    with pytest.warns(TruncationWarning, match="place 5"):
        first = translator.translate(LINES)
    assert first == one_by_one(model, translator.decoding)
    assert len(set(first)) > 4
    # The current weights of the model are used.
    bias = model.projection.bias
    bias.assign(bias + np.eye(bias.shape[0])[4] * 30)
    assert translator.translate(["a b c"]) == [" ".join(["x"] * 6)]
    # `</s>` ends no translation below the minimum length.
    bias.assign(bias + np.eye(bias.shape[0])[3] * 60)
    assert translator.translate(["a b c"]) == ["x x"]


def test_repetition_is_limited_as_in_other_translators(model):
    translator = translator_of(model, no_repeat_ngram=1)
    with pytest.warns(TruncationWarning, match="place 5"):
        found = translator.translate(LINES)
    decoding = translator.decoding
    assert found == one_by_one(model, decoding, [NoRepeatedNgrams(1)])
    assert found != one_by_one(model, decoding)


def test_lines_that_were_cut_are_warned_of(model):
    settings = {"max_source_length": 3, "max_length_ratio": 0.5}
    translator = translator_of(model, **settings)
    with pytest.warns(TruncationWarning, match="place 1") as caught:
        translator.translate(["a b c", "a b c d"])
    (warning,) = caught
    assert warning.message.places.unfinished == 2
