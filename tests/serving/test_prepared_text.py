"""Translators whose training text was prepared (tokenised, lowercased)."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.config import DataConfig
from luong_keras.recipe.evaluation import Evaluation
from luong_keras.serving.export import export_saved_model
from luong_keras.serving.saved_model_session import run_in_server_runtime
from luong_keras.serving.signatures import INPUTS, signatures
from luong_keras.text.preprocessing import preprocessors
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.serving.linux import needs_linux
from tests.serving.tiny_translator import tiny_translator, write_run

DATA = DataConfig(
    dataset="phrasebook",
    lowercase=True,
    normalize_punctuation=True,
    tokenize=True,
)
SOURCE_WORDS = ["the", "cat", "'s", "mr.", '"', ".", ","]
TARGET_WORDS = ["die", "katze", "(", ")", ",", ".", "z.b.", '"']
SOURCES = ["The cat’s, Mr. “Cat”.", "THE CAT…", "", "cat, the (cat)"]
TARGETS = ["„Die Katze“, z.B. die.", "(Die)", "Katze.", "die,die"]


@pytest.fixture
def eager():
    """Run functions eagerly, which saves the time of building graphs."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


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


@pytest.mark.slow
def test_translations_equal_those_of_prepared_text(
    eager, translator, plain, prepared
):
    sources, _, join_words = prepared
    changed = 0
    for found, expected in zip(
        translator.nbest(SOURCES), plain.nbest(sources), strict=True
    ):
        for one, other in zip(found, expected, strict=True):
            assert one.text == join_words(other.text)
            assert one.tokens == other.tokens
            assert one.source_tokens == other.source_tokens
            assert one.score == other.score
            changed += one.text != other.text
            assert translator.join([one.tokens]) == [other.text]
    assert changed  # Some words were joined.


@pytest.mark.slow
def test_scored_translations_are_prepared(eager, translator, plain, prepared):
    sources, targets, _ = prepared
    for one, other in zip(
        translator.score(SOURCES, TARGETS),
        plain.score(sources, targets),
        strict=True,
    ):
        assert one.tokens == other.tokens
        assert one.log_probability == other.log_probability
        np.testing.assert_array_equal(one.alignments, other.alignments)


def requests(sources, targets):
    count = len(sources)
    text, given = tf.constant(sources), tf.constant(targets)
    options = [tf.zeros(count, tf.int32)] * 2
    options += [-tf.ones(count), given, tf.zeros(count, tf.int32)]
    inputs = {
        "translate_with_options": [text, *options],
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
        lambda *graph, **options: {
            name: signatures(*graph, **options)[name] for name in names
        },
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::luong_keras.inference.TruncationWarning")
def test_tokenized_bleu_compares_tokenized_text(
    eager, translator, plain, prepared
):
    sources, _, join_words = prepared
    raw = plain.translate(sources)
    assert any(" " in line for line in raw)
    # The references are the translations, as unprepared text.
    references = [join_words(line) for line in raw]
    scores, translations = Evaluation(translator, DATA).scores(
        SOURCES, references
    )
    assert translations == references
    assert scores["bleu"]["score"] == pytest.approx(100)
    target = preprocessors(DATA)[1]
    again = [target(line) for line in references]
    same = again == raw
    assert (scores["bleu_tokenized"]["score"] > 99.99) == same


def test_ensemble_needs_equal_preprocessing(eager, run_path, plain, tmp_path):
    cased = dataclasses.replace(DATA, lowercase=False)
    other = write_run(tmp_path / "cased", plain, data=cased)
    assert Translator.from_run([run_path, run_path]).translate(["The cat."])
    with pytest.raises(ValueError, match=r"lowercase=True.*lowercase=False"):
        Translator.from_run([run_path, other])
