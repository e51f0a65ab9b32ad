"""Preparation of text in the graph, against sentences written by hand."""

from dataclasses import fields
from types import SimpleNamespace

import pytest
import tensorflow as tf

from luong_keras.config import DataConfig, DecodingConfig
from luong_keras.recipe import loading
from luong_keras.special_tokens import EOS
from luong_keras.text.preprocessing import Preprocessor, preprocessors
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.inference.option_tensors import option_tensors
from tests.layer_checks import preprocessing
from tests.serving.scripted_model import (
    SOURCE_WORDS,
    TARGET_WORDS,
    ScriptedModel,
)

SOURCE = "It’s It's A Dog."
TARGET = "„Qu’il“ qu'il L'Homme."
# By the settings: the English source and the French target as prepared, and
# the target joined again. The apostrophes differ in text that is prepared
# twice, or by the rules of the other language.
PREPARED = {
    "---": (SOURCE, TARGET, TARGET),
    "l--": ("it’s it's a dog.", *["„qu’il“ qu'il l'homme."] * 2),
    "-n-": ("It's It's A Dog.", *["\"Qu'il\" qu'il L'Homme."] * 2),
    "--t": (
        "It ’ s It 's A Dog .",
        "„ Qu ’ il “ qu' il L' Homme .",
        "„Qu ’ il“ qu'il L'Homme.",
    ),
    "lnt": (
        "it 's it 's a dog .",
        "\" qu' il \" qu' il l' homme .",
        "\"qu'il\" qu'il l'homme.",
    ),
}


def data_config(settings):
    return DataConfig(
        dataset="phrasebook",
        source_language="en",
        target_language="fr",
        **preprocessing(settings),
    )


@pytest.fixture
def translator_of(monkeypatch, eager):
    """Make translators from a run with these settings."""

    def translator(settings):
        search = {"max_source_length": 12, "replace_unknown": False}
        decoding = DecodingConfig(beam_size=1, **search)
        config = SimpleNamespace(data=data_config(settings), decoding=decoding)
        # Translations end at their minimum length.
        model = ScriptedModel({}, ({EOS: 0.9, "x": 0.1}, [10]))
        pair = [
            WordTokenizer.from_words(words, pretokenized=True)
            for words in (SOURCE_WORDS, TARGET_WORDS)
        ]
        run = model, pair, config
        monkeypatch.setattr(loading, "_load_single_run", lambda *_, **__: run)
        return Translator.from_run("run")

    return translator


def words(tokens):
    return [token.decode() for token in tokens.numpy().tolist() if token]


@pytest.mark.slow
@pytest.mark.parametrize("settings", list(PREPARED))
def test_every_text_is_prepared_once(translator_of, settings):
    source, target, finished = PREPARED[settings]
    translator = translator_of(settings)
    text, given = tf.constant([SOURCE]), tf.constant([TARGET])
    scored = translator.score_batch(text, given)
    assert words(scored["source_tokens"][0]) == source.split()
    assert words(scored["tokens"][0]) == [*target.split(), EOS]
    assert translator.encode_batch(text)["lengths"] == len(source.split())
    options = option_tensors(1, length_penalty=0.0, prefix=given)
    begun = translator.translate_batch(text, options)
    assert words(begun["source_tokens"][0]) == source.split()
    # The prefix is the whole translation, whose words are joined.
    assert words(begun["tokens"][0, 0]) == target.split()
    assert begun["translations"].numpy().tolist() == [[finished.encode()]]
    assert translator.join([target.split()]) == [target]


@pytest.mark.parametrize("settings", list(PREPARED))
def test_preprocessors_have_every_setting(settings):
    if settings == "---":
        expected = (None, None)
    else:
        flags = preprocessing(settings)
        expected = Preprocessor("en", **flags), Preprocessor("fr", **flags)
    assert preprocessors(data_config(settings)) == expected
    names = [field.name for field in fields(Preprocessor)]
    assert names == ["language", *preprocessing("---")]
