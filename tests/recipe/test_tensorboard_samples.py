from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.recipe.validation_callbacks import (
    TensorBoardSamples,
    _best_translations,
)
from luong_keras.training.epoch_logs import TranslationValidation
from tests.serving.tiny_translator import tiny_translator

SOURCES = ["a b", "a", "b | <i>a</i> *c*", "a b c d"]
REFERENCES = ["x", "y", "z", "w"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write six epochs and return the values by tag and step."""
    folder = tmp_path_factory.mktemp("tensorboard")
    translator = tiny_translator(
        beam_size=1, batch_size=2, max_source_length=20
    )
    validation = TranslationValidation(
        translator.translate,
        SOURCES,
        REFERENCES,
        lambda ours, theirs: 1.0,
        samples=2,
    )
    samples = TensorBoardSamples(folder, validation, translator)
    samples.set_params({"epochs": 6})
    for epoch in range(6):
        # As if the fifth epoch had ended the run.
        samples.set_model(SimpleNamespace(stop_training=epoch == 4))
        validation.on_epoch_end(epoch, {})
        samples.on_epoch_end(epoch, {})
    samples.on_train_end()
    (path,) = folder.iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            tensor = tf.make_ndarray(value.tensor)
            found.setdefault(value.tag, {})[event.step] = tensor
    return found, validation, translator


def test_samples_are_tables_in_every_epoch(written):
    found, validation, _ = written
    assert set(found["translations"]) == set(range(6))
    text = found["translations"][1].item().decode()
    head, rule, first, second = text.splitlines()
    assert head == "| source | reference | translation |"
    assert validation.sample_indices() == [0, 2]
    assert first.startswith("| a b | x |")
    assert validation.translations[0].split()[0] in first
    # Markdown and HTML are escaped.
    assert r"| b \| &lt;i&gt;a&lt;/i&gt; \*c\* | z |" in second


def test_alignments_are_images(written):
    found, *_ = written
    assert set(found) == {"translations", "alignment 1", "alignment 2"}
    # after epochs 1, 2, 4, ... and the last one, however it ends
    assert set(found["alignment 1"]) == {0, 1, 3, 4, 5}
    for width, height, picture in found["alignment 1"].values():
        image = tf.io.decode_png(picture).numpy()
        assert image.shape == (int(height), int(width), 3)
        assert np.unique(image).size > 10


@pytest.mark.slow
def test_results_on_jax_are_drawn_too(written):
    """Draw results of batches, some of which are NumPy arrays on JAX."""
    *_, translator = written

    class JaxTranslator:
        decoding = translator.decoding

        def translate_batch(self, text):
            found = translator.translate_batch(text)
            names = ("alignments", "lengths", "scores")
            return found | {name: found[name].numpy() for name in names}

    drawn = _best_translations(JaxTranslator(), SOURCES[:3])
    expected = [nbest[0] for nbest in translator.nbest(SOURCES[:3])]
    assert [t.tokens for t in drawn] == [t.tokens for t in expected]
    for one, other in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(one.alignments, other.alignments, atol=1e-6)


def test_without_samples_nothing_is_written(tmp_path):
    validation = TranslationValidation(
        list, ["a"], ["b"], lambda ours, theirs: 1.0, samples=0
    )
    samples = TensorBoardSamples(tmp_path / "x", validation, None)
    validation.on_epoch_end(0, {})
    samples.on_epoch_end(0, {})
    samples.on_train_end()
    assert not (tmp_path / "x").exists()
