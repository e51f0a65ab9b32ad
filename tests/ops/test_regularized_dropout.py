"""Two passes with other dropout (R-Drop) against formulas in NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.layers import RepeatBatch
from luong_keras.losses import TranslationLoss
from luong_keras.ops import chunked_loss
from tests.layer_checks import (
    loss_and_gradients,
    random,
    randomize,
    to_numpy,
    weighted_sum,
)

VOCABULARY, UNITS, WEIGHT = 9, 6, 3.0
TARGETS = np.random.default_rng(0).integers(1, VOCABULARY, (3, 5))
TARGETS[0, 0], TARGETS[1, 2:] = 0, 0
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def divergence(p, q):
    return np.sum(p * np.log(p / q)) / 2 + np.sum(q * np.log(q / p)) / 2


def expected_losses(logits, targets, smoothing):
    """Half of equation 4 of Liang et al., word by word; logits (2 B, T, V)."""
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found = np.zeros(targets.shape)
    for row, place in zip(*np.nonzero(targets), strict=True):
        wanted = np.full(VOCABULARY, smoothing / VOCABULARY)
        wanted[targets[row, place]] += 1 - smoothing
        p, q = shares[2 * row, place], shares[2 * row + 1, place]
        negative_log = -np.sum(wanted * np.log(p)) - np.sum(wanted * np.log(q))
        found[row, place] = (negative_log + WEIGHT * divergence(p, q)) / 2
    return found


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("smoothing, tied", [(0.0, None), (0.1, 4)])
def test_the_formula(training, smoothing, tied, float64):
    embedding = None
    if tied:
        embedding = keras.layers.Embedding(VOCABULARY, tied, dtype="float64")
    projection = lk.OutputProjection(
        VOCABULARY, embedding=embedding, use_bias=True, dtype="float64"
    )
    projection.build((None, None, UNITS))
    randomize(projection)
    vectors = random(6, 5, UNITS)
    losses, hits = projection.word_losses(
        vectors, TARGETS, smoothing, training=training, r_drop=WEIGHT
    )
    logits = to_numpy(projection(vectors))
    np.testing.assert_allclose(
        to_numpy(losses), expected_losses(logits, TARGETS, smoothing), **TIGHT
    )
    of_pass = logits.argmax(-1).reshape(3, 2, 5) == TARGETS[:, None]
    expected = of_pass.mean(1) * (TARGETS != 0)
    np.testing.assert_array_equal(to_numpy(hits), expected)


@pytest.mark.parametrize(
    "rows, tied, by_word",
    [(1, None, 0.3), (4, 4, random(3, 5)), (4, 4, 0.3), (100, None, 0.3)],
)
def test_gradients_of_chunks(rows, tied, by_word, monkeypatch, float64):
    monkeypatch.setattr(chunked_loss, "_MAX_LOGITS", 2 * rows * VOCABULARY)
    embedding = None
    if tied:
        embedding = keras.layers.Embedding(VOCABULARY, tied, dtype="float64")
    projection = lk.OutputProjection(
        VOCABULARY, embedding=embedding, use_bias=True, dtype="float64"
    )
    projection.build((None, None, UNITS))
    randomize(projection)
    vectors = keras.Variable(random(6, 5, UNITS), dtype="float64")

    def found(training):
        def loss():
            losses, hits = projection.word_losses(
                vectors + 0, TARGETS, 0.1, training=training, r_drop=WEIGHT
            )
            return weighted_sum(losses, by_word) + weighted_sum(
                hits, np.arange(15.0).reshape(3, 5)
            )

        return loss_and_gradients(
            loss, [vectors, *projection.trainable_variables]
        )

    in_chunks, gradients = found(True)
    whole, expected = found(False)
    np.testing.assert_allclose(in_chunks, whole, **TIGHT)
    for one, other in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(one, other, **TIGHT)


def test_equal_passes_add_nothing():
    projection = lk.OutputProjection(VOCABULARY)
    projection.build((None, None, UNITS))
    vectors = random(3, 5, UNITS).astype("float32")
    one, hits = projection.word_losses(vectors, TARGETS, training=True)
    two, hits_of_two = projection.word_losses(
        np.repeat(vectors, 2, 0), TARGETS, training=True, r_drop=100.0
    )
    np.testing.assert_allclose(to_numpy(two), to_numpy(one), rtol=1e-5)
    np.testing.assert_array_equal(to_numpy(hits_of_two), to_numpy(hits))


def made(r_drop, dropout=0.4, **settings):
    keras.utils.set_random_seed(3)
    config = lk.ModelConfig(
        **{
            **{"source_vocabulary_size": 11, "target_vocabulary_size": 12},
            **{"embedding_size": 4, "units": 6, "dropout": dropout},
            **{"encoder_layers": 1, "decoder_layers": 1, **settings},
        }
    )
    return lk.TranslationModel(config, r_drop=r_drop)


def batch(rows=4, features=None):
    rng = np.random.default_rng(1)
    source = rng.integers(4, 11, (rows, 5))
    target = rng.integers(4, 12, (rows, 6))
    target[0, 4:] = 0
    sources = [source]
    if features:
        sources = [random(rows, 5, features), np.ones((rows, 5), bool)]
    return [*sources, np.roll(target, 1, 1), target]


@pytest.mark.parametrize(
    "settings",
    [{}, {"source_features": 3, "encoder_layers": 2}],
    ids=["words", "features"],
)
def test_a_model_reads_each_sentence_twice_in_training_alone(settings):
    model = made(1.0, **settings)
    rows = batch(features=settings.get("source_features"))
    seen = []
    word_losses = model.projection.word_losses

    def watched(vectors, targets, *rest, **options):
        seen.append((vectors, targets))
        return word_losses(vectors, targets, *rest, **options)

    model.projection.word_losses = watched
    outputs = model.training_model(rows, training=True)
    model.training_model(rows)
    assert tuple(outputs["word"].shape) == (4, 6)
    (twice, targets), (once, same) = seen
    assert tuple(twice.shape) == (8, 6, 6) and tuple(once.shape) == (4, 6, 6)
    assert targets.shape == same.shape == (4, 6)
    pairs = to_numpy(twice).reshape(4, 2, 6, 6)
    # The two are of the same sentence, each with dropout of its own.
    assert not np.allclose(pairs[:, 0], pairs[:, 1])
    logits = model.model(rows[:-1], training=True)
    assert tuple(logits.shape) == (4, 6, 12)


def test_without_dropout_both_passes_are_the_model():
    weights = made(0.0, dropout=0.0)
    two = made(2.0, dropout=0.0)
    rows = batch()
    one = weights.training_model(rows, training=True)
    both = two.training_model(rows, training=True)
    for name in ("word", "hits"):
        np.testing.assert_allclose(
            to_numpy(both[name]), to_numpy(one[name]), rtol=1e-5, atol=1e-6
        )


def test_weights_are_those_of_a_model_that_reads_once():
    once, twice = (made(r_drop).training_model for r_drop in (0.0, 2.0))
    names = [[w.name for w in model.weights] for model in (once, twice)]
    assert names[0] == names[1]
    for one, other in zip(once.weights, twice.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_training_brings_the_passes_together(jit_compile):
    backend = keras.backend.backend()
    if backend == ("torch" if jit_compile else "jax"):
        pytest.skip("Keras compiles on JAX, where it is slow without; not here")
    gaps = {}
    rows = batch(rows=16)
    for r_drop in (1e-6, 20.0):
        model = made(r_drop, units=16)
        model.training_model.compile(
            optimizer=keras.optimizers.Adam(0.02),
            loss={"word": TranslationLoss("word")},
            jit_compile=jit_compile,
        )
        model.training_model.fit(
            rows, {"word": rows[-1]}, batch_size=8, epochs=30, verbose=0
        )
        draws = [
            ops.softmax(model.model(rows[:-1], training=True)) for _ in range(8)
        ]
        gaps[r_drop] = np.std([to_numpy(x) for x in draws], axis=0).mean()
    assert gaps[20.0] < gaps[1e-6] / 2


def test_rows_are_repeated_in_a_functional_model():
    rows = keras.Input((None,), dtype="int32")
    model = keras.Model(rows, RepeatBatch()(rows))
    words = np.array([[5, 300], [7, 0]], "int32")
    assert to_numpy(model(words)).tolist() == words.tolist()
    twice = to_numpy(model(words, training=True))
    assert twice.tolist() == [[5, 300], [5, 300], [7, 0], [7, 0]]


def test_mistakes():
    with pytest.raises(ValueError, match="0 or more. Received: r_drop=-1"):
        lk.WordLosses(lk.OutputProjection(20), r_drop=-1.0)
    with pytest.raises(ValueError, match="divergence of two passes"):
        lk.WordLosses(lk.OutputProjection(20), r_drop=1.0, sampled=5)
    with pytest.raises(ValueError, match="Received: r_drop=-2"):
        lk.config.TrainingConfig(r_drop=-2.0)
    with pytest.raises(ValueError, match="Set it to null"):
        lk.config.TrainingConfig(r_drop=1.0, sampled_softmax=5)
    training = lk.config.TrainingConfig(r_drop=1.0)
    with pytest.raises(ValueError, match="Set model.dropout"):
        lk.RunConfig(model=lk.ModelConfig(dropout=0.0), training=training)
