"""How the graph prepares text, against sentences that were written by hand."""

from dataclasses import fields
from types import SimpleNamespace

import pytest
import tensorflow as tf

from luong_keras.config import DataConfig, DecodingConfig
from luong_keras.inference.request_options import SearchOptions
from luong_keras.recipe import run_reading
from luong_keras.special_tokens import EOS
from luong_keras.text.preprocessing import Preprocessor, preprocessors
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.serving.scripted_model import (
    SOURCE_WORDS,
    TARGET_WORDS,
    ScriptedModel,
)

SOURCE = "It’s It's A Dog."
TARGET = "„Qu’il“ qu'il L'Homme."
# With `-` for a setting that is off, lower-casing, punctuation, words: the
# English source and the French target as prepared, and the latter put back.
# What is prepared twice, or in the other language, has other apostrophes.
PREPARED = {
    "---": (SOURCE, TARGET, TARGET),
    "l--": (
        "it’s it's a dog.",
        "„qu’il“ qu'il l'homme.",
        "„qu’il“ qu'il l'homme.",
    ),
    "-n-": (
        "It's It's A Dog.",
        "\"Qu'il\" qu'il L'Homme.",
        "\"Qu'il\" qu'il L'Homme.",
    ),
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
FLAGS = ("lowercase", "normalize_punctuation", "tokenize")


def data_config(settings):
    flags = [letter != "-" for letter in settings]
    return DataConfig(
        dataset="phrasebook",
        source_language="en",
        target_language="fr",
        **dict(zip(FLAGS, flags, strict=True)),
    )


@pytest.fixture
def translator_of(monkeypatch):
    """A translator from a run with these settings, called eagerly."""
    tf.config.run_functions_eagerly(True)

    def translator(settings):
        config = SimpleNamespace(
            data=data_config(settings),
            decoding=DecodingConfig(
                beam_size=1, max_source_length=12, replace_unknown=False
            ),
        )
        # Ends as soon as it may.
        model = ScriptedModel({}, ({EOS: 0.9, "x": 0.1}, [10]))
        pair = [
            WordTokenizer.from_words(words, pretokenized=True)
            for words in (SOURCE_WORDS, TARGET_WORDS)
        ]
        monkeypatch.setattr(
            run_reading, "_read_run", lambda *_, **__: (model, pair, config)
        )
        return Translator.from_run("run")

    yield translator
    tf.config.run_functions_eagerly(False)


def words(tokens):
    return [token.decode() for token in tokens.numpy().tolist() if token]


@pytest.mark.parametrize("settings", list(PREPARED))
def test_each_setting_prepares_every_text_once(translator_of, settings):
    source, target, finished = PREPARED[settings]
    translator = translator_of(settings)
    text, given = tf.constant([SOURCE]), tf.constant([TARGET])
    scored = translator.score_batch(text, given)
    assert words(scored["source_tokens"][0]) == source.split()
    assert words(scored["tokens"][0]) == [*target.split(), EOS]
    assert translator.encode_batch(text)["lengths"] == len(source.split())
    options = SearchOptions.columns(1, length_penalty=0.0, prefix=given)
    begun = translator.translate_batch(text, options)
    assert words(begun["source_tokens"][0]) == source.split()
    # The prefix is the whole translation, whose words are put together.
    assert words(begun["tokens"][0, 0]) == target.split()
    assert begun["translations"].numpy().tolist() == [[finished.encode()]]
    assert translator.join([target.split()]) == [target]


@pytest.mark.parametrize("settings", list(PREPARED))
def test_what_prepares_text_is_made_of_every_setting(settings):
    if settings == "---":
        expected = (None, None)
    else:
        flags = [letter != "-" for letter in settings]
        expected = Preprocessor("en", *flags), Preprocessor("fr", *flags)
    assert preprocessors(data_config(settings)) == expected
    names = [field.name for field in fields(Preprocessor)]
    assert names == ["language", *FLAGS]
