import keras
import numpy as np
import pytest

from luong_keras import OutputProjection
from luong_keras.layers.output_projection import WordLosses
from tests.layer_checks import EXACT, random, randomize, to_numpy

VECTORS = random(2, 3, 4)
TARGETS = np.array([[4, 5, 3], [2, 3, 0]])


def make(embedding_width=None, use_bias=False):
    embedding = None
    if embedding_width:
        embedding = keras.layers.Embedding(7, embedding_width, dtype="float64")
    layer = OutputProjection(
        7, embedding=embedding, use_bias=use_bias, dtype="float64"
    )
    layer.build((None, None, 4))
    return randomize(layer)


def reference_losses(logits, smoothing):
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = (1 - smoothing) * np.eye(7)[TARGETS] + smoothing / 7
    return -(wanted * log_p).sum(-1) * (TARGETS != 0)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("embedding_width", [None, 4, 5])
def test_logits(embedding_width, use_bias, float64):
    layer = make(embedding_width, use_bias)
    expected = VECTORS
    if embedding_width != 4:
        assert layer.kernel.shape == (4, embedding_width or 7)
        expected = expected @ to_numpy(layer.kernel)
    if embedding_width:
        expected = expected @ to_numpy(layer.embedding.embeddings).T
    if use_bias:
        expected = expected + to_numpy(layer.bias)
    np.testing.assert_allclose(layer(VECTORS), expected, **EXACT)
    assert (
        len(layer.weights) == use_bias + {None: 1, 4: 1, 5: 2}[embedding_width]
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("embedding_width", [None, 5])
def test_word_losses(embedding_width, smoothing, float64):
    layer = make(embedding_width)
    logits = to_numpy(layer(VECTORS))
    losses, hits = layer.word_losses(
        VECTORS, TARGETS, label_smoothing=smoothing
    )
    np.testing.assert_allclose(
        losses, reference_losses(logits, smoothing), **EXACT
    )
    np.testing.assert_array_equal(
        hits, (logits.argmax(-1) == TARGETS) * (TARGETS != 0)
    )


def test_smoothing_is_for_training(float64):
    projection = make()
    layer = WordLosses(projection, label_smoothing=0.1, dtype="float64")
    logits = to_numpy(projection(VECTORS))
    for training, smoothing in ((True, 0.1), (False, 0.0)):
        losses, _ = layer(VECTORS, TARGETS, training=training)
        np.testing.assert_allclose(
            losses, reference_losses(logits, smoothing), **EXACT
        )


def test_half_precision_gives_logits_in_float32():
    layer = OutputProjection(7, dtype="mixed_bfloat16")
    logits = layer(VECTORS)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    inputs = keras.Input((None, 4))
    assert layer(inputs).dtype == "float32"


def test_a_tied_model_is_still_tied_after_loading(tmp_path):
    embedding = keras.layers.Embedding(7, 4, mask_zero=True)
    projection = OutputProjection(7, embedding=embedding, name="projection")
    words = keras.Input((None,), dtype="int32")
    model = keras.Model(words, projection(embedding(words)))
    assert len(model.trainable_variables) == 1
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(TARGETS), model(TARGETS))
    assert len(loaded.trainable_variables) == 1
    tied = loaded.get_layer("projection").embedding
    assert tied is loaded.get_layer(embedding.name)


def test_the_embedding_must_have_a_row_a_word():
    with pytest.raises(
        ValueError, match="input_dim=7.*Received: .*input_dim=8"
    ):
        OutputProjection(7, embedding=keras.layers.Embedding(8, 4))
