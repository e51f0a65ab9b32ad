import copy

import keras
import numpy as np
import pytest

from luong_keras import OutputProjection
from luong_keras.layers.embedding import Embedding
from luong_keras.layers.word_losses import WordLosses
from tests.layer_checks import (
    EXACT,
    ROUNDOFF,
    assert_all_close,
    assert_near,
    few_at_first,
    int8_rounded,
    loss_and_gradients,
    random,
    randomize,
    reference_word_losses,
    rounded,
    to_numpy,
    weighted_sum,
)

VECTORS = random(2, 3, 4)
TARGETS = np.array([[4, 5, 3], [2, 3, 0]])


def make(embedding_width=None, use_bias=False):
    embedding = None
    if embedding_width:
        embedding = keras.layers.Embedding(7, embedding_width, dtype="float64")
    layer = OutputProjection(
        7, embedding=embedding, use_bias=use_bias, dtype="float64"
    )
    return randomize(layer, (None, None, 4))


def reference_losses(logits, smoothing, pad_id=0):
    real = pad_id != TARGETS
    return reference_word_losses(logits, TARGETS, smoothing) * real


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


def test_projection_of_scaled_symbolic_vectors():
    # Keras marks the product as sparse, and JAX obeys.
    vectors = keras.Input((3, 4))
    layer = OutputProjection(7)
    model = keras.Model(vectors, layer(vectors * 2.0))
    x = random(2, 3, 4).astype("float32")
    np.testing.assert_allclose(
        to_numpy(model(x)), to_numpy(layer(2 * x)), rtol=1e-6
    )


def test_projection_runs_in_time_distributed():
    layer = OutputProjection(7, use_bias=True)
    vectors = VECTORS.astype("float32")
    inputs = keras.Input(VECTORS.shape[1:])
    model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
    np.testing.assert_allclose(model(vectors), layer(vectors), rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pad_id", [0, 3])
@pytest.mark.parametrize("embedding_width", [None, 5])
def test_word_losses(embedding_width, pad_id, smoothing, float64):
    layer = make(embedding_width)
    logits = to_numpy(layer(VECTORS))
    losses, hits = layer.word_losses(VECTORS, TARGETS, smoothing, pad_id)
    np.testing.assert_allclose(
        losses, reference_losses(logits, smoothing, pad_id), **EXACT
    )
    right = logits.argmax(-1) == TARGETS
    np.testing.assert_array_equal(hits, right * (pad_id != TARGETS))


def test_label_smoothing_applies_only_in_training(float64):
    projection = make()
    layer = WordLosses(projection, label_smoothing=0.1, dtype="float64")
    logits = to_numpy(projection(VECTORS))
    for training, smoothing in ((True, 0.1), (False, 0.0)):
        losses, _ = layer(VECTORS, TARGETS, training=training)
        np.testing.assert_allclose(
            losses, reference_losses(logits, smoothing), **EXACT
        )


@pytest.mark.slow_after_first
@pytest.mark.parametrize("sampled", [None, 3])
@pytest.mark.parametrize("pad_id", few_at_first([-1, -100, 999], [-1, 999]))
def test_pad_id_may_be_outside_the_vocabulary(sampled, pad_id):
    found = []
    for pad in (0, pad_id):
        keras.utils.set_random_seed(1)
        projection = OutputProjection(7)
        layer = WordLosses(projection, pad_id=pad, sampled=sampled, seed=1)
        layer.build(VECTORS.shape, TARGETS.shape)
        targets = np.where(TARGETS == 0, pad, TARGETS)
        vectors = keras.Variable(VECTORS)

        def loss(layer=layer, vectors=vectors, targets=targets):
            losses, hits = layer(vectors + 0, targets, training=True)
            return weighted_sum(losses, 0.3) + weighted_sum(hits, 1.0)

        value, gradients = loss_and_gradients(
            loss, [vectors, projection.kernel]
        )
        found.append((value, *gradients))
    for expected, actual in zip(*found, strict=True):
        assert np.isfinite(to_numpy(actual)).all()
        np.testing.assert_array_equal(expected, actual)


def test_half_precision_gives_logits_in_float32():
    layer = OutputProjection(7, dtype="mixed_bfloat16")
    logits = layer(VECTORS)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    inputs = keras.Input((None, 4))
    assert layer(inputs).dtype == "float32"


@pytest.mark.slow_after_first
@pytest.mark.parametrize("sampled", [None, 400])
@pytest.mark.parametrize("by_word", [1.0, np.linspace(0.5, 1.0, 12)])
def test_improbable_words_have_a_gradient_in_float16(sampled, by_word):
    """Most of 50,000 words are less probable than the smallest float16.

    The logit of the target is `gap` above all others. Rounding a logit once
    changes it by up to `gap` roundings, and the probability of its word by the
    same share. The probability, its products and their sums are rounded once
    more each. The optimizer scales the loss by `scale`.
    """
    vocabulary, units, gap, scale = 50_000, 8, 17, 2.0**10
    tolerance = (gap + 4) * ROUNDOFF["float16"]
    targets = np.full((1, 12), 2)
    inputs = rounded(random(1, 12, units) ** 2 % 0.5 + 0.5, "float16")
    # The first entry is 1, so that `kernel[0]` is added to the logits.
    inputs[..., 0] = 1.0
    kernel = 0.01 * random(units, vocabulary, seed=1)
    kernel[0, 2] += gap
    found = []
    for dtype in ("mixed_float16", "float32"):
        projection = OutputProjection(vocabulary, dtype=dtype)
        layer = WordLosses(projection, sampled=sampled, seed=3, dtype=dtype)
        layer.build(inputs.shape, targets.shape)
        projection.kernel.assign(rounded(kernel, "float16"))
        vectors = keras.Variable(inputs)

        def loss(layer=layer, vectors=vectors):
            losses, _ = layer(vectors + 0, targets, training=True)
            assert keras.backend.standardize_dtype(losses.dtype) == "float32"
            return weighted_sum(losses, scale * by_word)

        value, gradients = loss_and_gradients(
            loss, [vectors, projection.kernel]
        )
        found.append((value, *gradients))
    (half, d_vectors, d_kernel), (single, *expected) = found
    np.testing.assert_allclose(half, single, rtol=tolerance)
    assert_near([d_vectors], expected[:1], tolerance)
    assert (expected[1] != 0).sum() >= units * (sampled or vocabulary)
    np.testing.assert_allclose(
        d_kernel[:, 3:], expected[1][:, 3:], rtol=tolerance
    )


def saved_and_loaded(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


COPIES = {
    "saved": saved_and_loaded,
    "cloned": lambda model, _: keras.models.clone_model(model),
    "from_config": lambda model, _: model.from_config(model.get_config()),
    "from JSON": lambda model, _: keras.models.model_from_json(model.to_json()),
    "deep copy": lambda model, _: copy.deepcopy(model),
    "copy of a copy": lambda model, folder: keras.models.clone_model(
        saved_and_loaded(keras.models.clone_model(model), folder)
    ),
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("losses", [False, True])
@pytest.mark.parametrize("copied", COPIES.values(), ids=list(COPIES))
def test_copy_of_a_tied_model_is_tied(copied, losses, tmp_path):
    words = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(7, 4, mask_zero=True, name="words")
    first = keras.layers.Embedding(7, 4, name="other")
    # The embedding is inside another model and not the only one.
    reader = keras.Sequential([embedding], name="read")
    last = OutputProjection(7, embedding=embedding, name="last")
    if losses:
        last = WordLosses(last, name="last")
    vectors = keras.layers.Dense(5)(reader(words) + first(words))
    outputs = last(vectors, words)[0] if losses else last(vectors)
    model = keras.Model(words, outputs)
    again = copied(model, tmp_path)
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(TARGETS), model(TARGETS))
    assert len(again.trainable_variables) == len(model.trainable_variables)
    layer = again.get_layer("last")
    tied = (layer.projection if losses else layer).embedding
    (inner,) = again.get_layer("read").layers
    assert tied is inner and tied is not embedding


def test_copy_is_tied_after_a_call_with_training():
    words = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(7, 4)
    last = OutputProjection(7, embedding=embedding)
    outputs = last(embedding(words), training=False)
    again = keras.models.clone_model(keras.Model(words, outputs))
    assert len(again.weights) == 1


@pytest.mark.slow_after_first
@pytest.mark.parametrize("losses_first", [False, True])
@pytest.mark.parametrize("copied", COPIES.values(), ids=list(COPIES))
def test_copy_shares_the_projection_of_losses_and_logits(
    copied, losses_first, tmp_path
):
    vectors = keras.Input((None, 4))
    targets = keras.Input((None,), dtype="int32")
    projection = OutputProjection(7, use_bias=True, name="logits")
    losses = WordLosses(projection, name="losses")
    outputs = [losses(vectors, targets)[0], projection(vectors)]
    if not losses_first:
        vectors = keras.Input((None, 4))
        outputs = [projection(vectors), losses(vectors, targets)[0]]
    model = keras.Model([vectors, targets], outputs)
    again = copied(model, tmp_path)
    assert len(again.weights) == len(model.weights) == 2
    again.set_weights(model.get_weights())
    for found, expected in zip(
        again([VECTORS, TARGETS]), model([VECTORS, TARGETS]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    shared = again.get_layer("losses").projection
    assert shared is again.get_layer("logits") and shared is not projection


def test_copy_of_a_projection_keeps_its_own_embedding(tmp_path):
    inputs = keras.Input((None, 4))
    last = OutputProjection(
        7, embedding=keras.layers.Embedding(7, 4), name="last"
    )
    model = keras.Model(inputs, last(inputs))
    for copied in COPIES.values():
        again = copied(model, tmp_path)
        again.set_weights(model.get_weights())
        np.testing.assert_array_equal(again(VECTORS), model(VECTORS))


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize("kind", [keras.layers.Embedding, Embedding])
def test_losses_of_a_quantized_embedding_equal_those_of_a_rounded_one(kind):
    layer, rounded = (
        WordLosses(OutputProjection(7, embedding=kind(7, 5))) for _ in range(2)
    )
    for each in (layer, rounded):
        randomize(each, (None, None, 4))
    table = rounded.projection.embedding.embeddings
    table.assign(int8_rounded(to_numpy(table)))
    layer.projection.embedding.quantize("int8")
    vectors = VECTORS.astype("float32")
    for training in (False, True):
        assert_all_close(
            layer(vectors, TARGETS, training=training),
            rounded(vectors, TARGETS, training=training),
            rtol=1e-5,
        )
    words = np.array([5, 2, 6])
    assert_all_close(
        layer.projection.loop_weights(words)[0],
        rounded.projection.loop_weights(words)[0],
        rtol=1e-5,
    )


def test_embedding_must_have_one_row_per_word():
    with pytest.raises(
        ValueError, match="input_dim=7.*Received: .*input_dim=8"
    ):
        OutputProjection(7, embedding=keras.layers.Embedding(8, 4))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sampled", [None, 5])
@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (3,), (2, 3, 1)])
def test_targets_must_have_one_id_per_vector(shape, sampled, training):
    losses = WordLosses(OutputProjection(9), sampled=sampled)
    with pytest.raises(ValueError, match=r"Expected: shape \(2, 3\)"):
        losses(
            np.ones((2, 3, 4), "float32"),
            np.ones(shape, "int32"),
            training=training,
        )


@pytest.mark.skipif(
    keras.backend.backend() != "torch",
    reason="tested with the gradients of decoders elsewhere",
)
def test_second_derivatives_are_refused_on_torch(float64):
    import torch

    vectors = torch.tensor(VECTORS, requires_grad=True)
    losses, _ = make().word_losses(vectors, TARGETS, training=True)
    loss = losses.square().sum()
    (gradient,) = torch.autograd.grad(loss, vectors, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
