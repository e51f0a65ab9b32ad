"""The chunked word losses against losses from all logits."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.ops import chunked_loss
from luong_keras.ops.cross_entropy import word_losses
from tests.layer_checks import (
    assert_all_close,
    few_at_first,
    loss_and_gradients,
    random,
    randomize,
    weighted_sum,
)

VOCABULARY, UNITS = 9, 6
TARGETS = np.random.default_rng(0).integers(1, VOCABULARY, (3, 5))
TARGETS[0, 0], TARGETS[1, 2:] = 0, 0
TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def compare(monkeypatch, rows, by_word, smoothing=0.1, targets=TARGETS, **kw):
    monkeypatch.setattr(chunked_loss, "_MAX_LOGITS", rows * VOCABULARY)
    width = kw.pop("tied", None)
    embedding = None
    if width:
        embedding = keras.layers.Embedding(VOCABULARY, width, dtype="float64")
    projection = lk.OutputProjection(
        VOCABULARY, embedding=embedding, dtype="float64", **kw
    )
    projection.build((None, None, UNITS))
    randomize(projection)
    vectors = random(*targets.shape, UNITS)
    vectors = keras.Variable(vectors, dtype="float64")

    def evaluate(training=None):
        def loss():
            if training is None:
                losses, hits = word_losses(
                    projection(vectors + 0), targets, smoothing
                )
            else:
                losses, hits = projection.word_losses(
                    vectors + 0, targets, smoothing, training=training
                )
            return weighted_sum(losses, by_word) + weighted_sum(
                hits, np.arange(1.0 * targets.size).reshape(targets.shape)
            )

        return loss_and_gradients(
            loss, [vectors, *projection.trainable_variables]
        )

    whole, expected = evaluate()
    for training in (True, False):
        found, gradients = evaluate(training)
        np.testing.assert_allclose(found, whole, **TIGHT)
        assert_all_close(gradients, expected, **TIGHT)
    token = chunked_loss.evaluates.set(True)
    found = projection.word_losses(vectors + 0, targets, smoothing)
    chunked_loss.evaluates.reset(token)
    expected = word_losses(projection(vectors + 0), targets, smoothing)
    assert_all_close(found, expected, **TIGHT)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("by_word", [0.3, random(3, 5)])
def test_chunks_and_weights(rows, by_word, monkeypatch, float64):
    compare(monkeypatch, rows, by_word)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "smoothing, use_bias, tied",
    few_at_first(
        itertools.product([0.0, 0.1], [False, True], [None, UNITS, 4]),
        [
            *((0.1, True, tied) for tied in (None, UNITS, 4)),
            *((0.0, False, None), (0.1, False, 4)),
        ],
    ),
)
def test_smoothing_bias_and_tied_embeddings(
    tied, use_bias, smoothing, monkeypatch, float64
):
    compare(monkeypatch, 4, 0.3, smoothing, tied=tied, use_bias=use_bias)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("by_word", [0.3, random(3, 5)])
def test_batch_of_only_padding(by_word, monkeypatch, float64):
    compare(monkeypatch, 4, by_word, targets=np.zeros((3, 5), "int32"))


@pytest.mark.parametrize("word", [5, 0])
def test_one_word_or_padding_in_eager_mode(word):
    projection = lk.OutputProjection(VOCABULARY)
    losses = lk.layers.WordLosses(projection)
    vectors, targets = random(1, 1, UNITS), np.array([[word]])
    chunked, hits = losses(vectors, targets, training=True)
    expected, _ = losses(vectors, targets)
    np.testing.assert_allclose(chunked, expected, rtol=1e-5)
    assert hits.shape == (1, 1) and bool(ops.all(chunked == 0)) == (word == 0)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="other backends raise an error"
)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("sampled", [None, 3])
@pytest.mark.parametrize("word", [VOCABULARY, -1])
def test_no_word_outside_the_vocabulary_gets_a_loss(word, sampled, training):
    projection = lk.OutputProjection(VOCABULARY)
    losses = lk.layers.WordLosses(projection, sampled=sampled)
    targets = np.array([[3, word, 0]])
    found, _ = losses(random(1, 3, UNITS), targets, training=training)
    assert np.isnan(found).tolist() == [[False, True, False]]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
@pytest.mark.parametrize("by_word", [0.3, 1.0])
def test_no_words(shape, by_word, monkeypatch, float64):
    targets = np.zeros(shape, "int32")
    compare(monkeypatch, 4, by_word, targets=targets)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("sampled", [None, 4])
@pytest.mark.parametrize("training", [True, False])
def test_no_words_in_eager_mode(shape, dtype, sampled, training):
    losses = lk.layers.WordLosses(
        lk.OutputProjection(VOCABULARY, dtype=dtype), sampled=sampled
    )
    vectors, targets = np.zeros((*shape, UNITS)), np.zeros(shape, "int32")
    found, hits = losses(vectors, targets, training=training)
    assert found.shape == hits.shape == shape


@pytest.mark.slow_after_first
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "words, count",
    few_at_first(
        itertools.product([1, 2, 5, 14], [1, 2, 3]),
        [(1, 2), (2, 3), (5, 3), (14, 1), (14, 2)],
    ),
)
def test_parallel_chunks(count, words, monkeypatch, float64):
    targets = np.zeros(15, "int32")
    targets[np.random.default_rng(1).permutation(15)[:words]] = 3
    monkeypatch.setattr(chunked_loss, "_PARALLEL_CHUNKS", count)
    compare(monkeypatch, 6, 0.3, targets=targets.reshape(3, 5))


@pytest.mark.tensorflow
@pytest.mark.parametrize("gpu, count", [(False, 2), (True, 1)])
def test_gpu_computes_one_chunk_at_a_time(monkeypatch, gpu, count):
    monkeypatch.setattr(chunked_loss, "has_gpu", lambda: gpu)
    sizes = []
    original = chunked_loss._Words._compute_chunk

    def recorded(self, rows, weights):
        sizes.append(len(rows))
        return original(self, rows, weights)

    monkeypatch.setattr(chunked_loss._Words, "_compute_chunk", recorded)
    monkeypatch.setattr(chunked_loss, "_MAX_LOGITS", 100 * VOCABULARY)
    projection = lk.OutputProjection(VOCABULARY)
    projection.build((None, None, UNITS))
    projection.word_losses(
        random(3, 5, UNITS).astype("float32"), TARGETS, training=True
    )
    words = int((TARGETS != 0).sum())
    assert sizes == [-(-words // count), words // count][:count]


@pytest.mark.parametrize("training", [True, False])
def test_logits_are_never_computed_for_all_words(monkeypatch, training):
    largest = []
    original = chunked_loss.losses_and_gradients

    def recorded(logits, *rest):
        largest.append(tuple(logits.shape))
        return original(logits, *rest)

    monkeypatch.setattr(chunked_loss, "losses_and_gradients", recorded)
    monkeypatch.setattr(chunked_loss, "_MAX_LOGITS", 4 * VOCABULARY)
    projection = lk.OutputProjection(VOCABULARY)
    projection.build((None, None, UNITS))
    token = chunked_loss.evaluates.set(not training)
    losses, _ = projection.word_losses(
        random(3, 5, UNITS).astype("float32"), TARGETS, training=training
    )
    chunked_loss.evaluates.reset(token)
    assert np.isfinite(ops.convert_to_numpy(losses)).all()
    # On JAX one trace serves all chunks but the first. TensorFlow computes two
    # chunks of half the size in parallel.
    maximum = 2 if keras.backend.backend() == "tensorflow" else 4
    assert largest and all(shape[0] <= maximum for shape in largest)
