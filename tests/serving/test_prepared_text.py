"""Translators whose training text was prepared (tokenised, lowercased)."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.config import DataConfig
from luong_keras.serving.export import export_saved_model
from luong_keras.serving.saved_model_session import run_in_server_runtime
from luong_keras.serving.signatures import INPUTS, signatures
from luong_keras.text.preprocessing import preprocessors
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.layer_checks import preprocessing
from tests.serving.linux import needs_linux
from tests.serving.tiny_translator import tiny_translator, write_run

DATA = DataConfig(dataset="phrasebook", **preprocessing("lnt"))
SOURCE_WORDS = ["the", "cat", "'s", "mr.", '"', ".", ","]
TARGET_WORDS = ["die", "katze", "(", ")", ",", ".", "z.b.", '"']
SOURCES = ["The cat’s, Mr. “Cat”.", "THE CAT…", "", "cat, the (cat)"]
TARGETS = ["„Die Katze“, z.B. die.", "(Die)", "Katze.", "die,die"]


@pytest.fixture(scope="module")
def plain():
    """A translator without preparation, of text that sacremoses has split."""
    model = tiny_translator().translation_model
    source, target = (
        WordTokenizer.from_words(words, pretokenized=True)
        for words in (SOURCE_WORDS, TARGET_WORDS)
    )
    decoding = dataclasses.replace(tiny_translator().decoding, batch_size=4)
    return Translator(model, source, target, decoding)


@pytest.fixture(scope="module")
def run_path(plain, tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), plain, data=DATA)


@pytest.fixture(scope="module")
def translator(run_path):
    return Translator.from_run(run_path)


@pytest.fixture(scope="module")
def prepared():
    """Prepared sources and targets, and the function that joins words."""
    source, target = preprocessors(DATA)
    return (
        [source(line) for line in SOURCES],
        [target(line) for line in TARGETS],
        target.postprocess,
    )


def requests(sources, targets):
    count = len(sources)
    text, given = tf.constant(sources), tf.constant(targets)
    zeros = tf.zeros(count, tf.int32)
    inputs = {
        "translate_with_options": [
            text,
            zeros,
            zeros,
            -tf.ones(count),
            given,
            zeros,
        ],
        "score": [text, given],
    }
    return {
        name: dict(zip(INPUTS[name], tensors, strict=True))
        for name, tensors in inputs.items()
    }


@pytest.fixture
def two_signatures(monkeypatch):
    """Export only the signatures of `requests`, without checks.

    The other signatures have the same parts and take seconds each; the test
    itself calls the runtime of the server.
    """
    names = list(requests([""], [""]))
    export = "luong_keras.serving.export."
    monkeypatch.setattr(
        export + "signatures",
        lambda *graph, **kw: {x: signatures(*graph, **kw)[x] for x in names},
    )
    for check in ("write_warmup", "check_saved_model"):
        monkeypatch.setattr(export + check, lambda *arguments: None)


@needs_linux
@pytest.mark.slow
def test_export_takes_unprepared_text(
    translator, plain, prepared, two_signatures, tmp_path
):
    sources, targets, join_words = prepared
    folder = export_saved_model(translator, tmp_path / "1")
    calls = [
        (name, {key: tensor.numpy() for key, tensor in inputs.items()})
        for name, inputs in requests(SOURCES, TARGETS).items()
    ]
    functions = signatures(plain, traced=False)
    for (name, inputs), answer in zip(
        requests(sources, targets).items(),
        run_in_server_runtime(folder, calls),
        strict=True,
    ):
        expected = functions[name](*inputs.values())
        for key, tensor in expected.items():
            value = tensor.numpy()
            if key.startswith("translation"):
                value = np.vectorize(
                    lambda text: join_words(text.decode()).encode(), otypes="O"
                )(value)
            if value.dtype == object or value.dtype.kind in "ib":
                assert (answer[key] == value).all(), (name, key)
            else:
                np.testing.assert_allclose(answer[key], value, atol=1e-5)


def test_ensemble_needs_equal_preprocessing(eager, run_path, plain, tmp_path):
    cased = dataclasses.replace(DATA, lowercase=False)
    other = write_run(tmp_path / "cased", plain, data=cased)
    assert Translator.from_run([run_path, run_path]).translate(["The cat."])
    with pytest.raises(ValueError, match=r"lowercase=True.*lowercase=False"):
        Translator.from_run([run_path, other])
