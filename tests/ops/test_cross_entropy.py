"""Word losses, exact and estimated from a sample of the vocabulary."""

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.ops.cross_entropy import (
    draw_words,
    sampled_word_losses,
    word_losses,
)
from tests.layer_checks import (
    assert_all_close,
    few_on_jax,
    loss_and_gradients,
    random,
    randomize,
    to_numpy,
    weighted_sum,
)

TARGETS = np.array([[4, 5, 3], [2, 3, 0]])
V, C, U, SAMPLES = 12, 4, 5, 3000
FEW_TARGETS = np.array([3, 0, 7, 1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_extreme_logits_give_finite_losses_in_float32(dtype):
    logits = ops.cast([[[6e4, 0.0, -6e4, 0.0]] * 2], dtype)
    losses, _ = word_losses(logits, np.array([[2, 0]]))
    exact = to_numpy(logits)[0, 0]
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    np.testing.assert_allclose(losses, [[exact[0] - exact[2], 0]], rtol=1e-6)


@pytest.mark.tensorflow
def test_losses_pass_the_check_for_finite_numbers():
    import tensorflow as tf

    tf.debugging.enable_check_numerics()
    try:
        found = tf.function(word_losses)(np.zeros((2, 3, V), "f"), TARGETS)
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isfinite(found).all()


def test_nan_at_padding_is_ignored():
    logits = random(1, 2, 4).astype("float32")
    logits[0, 1] = np.nan
    losses, hits = word_losses(logits, np.array([[2, 0]]))
    assert to_numpy(losses)[0, 1] == to_numpy(hits)[0, 1] == 0


@pytest.fixture(scope="module")
def samples():
    """Draw many samples: ids and log-probabilities, both (D, C)."""
    generator = keras.random.SeedGenerator(1)

    def draw():
        return draw_words(V, C, generator)

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        draw = tf.function(draw)  # Faster than eager calls.
    ids, log_drawn = zip(*(draw() for _ in range(SAMPLES)), strict=True)
    return np.array([to_numpy(x) for x in ids], int), np.array(
        [to_numpy(x) for x in log_drawn]
    )


@pytest.mark.slow_on_jax
def test_words_are_drawn_once_each_and_frequent_ones_more_often(samples):
    ids, _ = samples
    assert all(len(set(row)) == C for row in ids)
    counts = np.bincount(ids.ravel(), minlength=V)
    assert counts.min() > 0 and counts[0] > 2 * counts[V - 1]


@pytest.mark.slow_on_jax
def test_sums_over_drawn_words_are_unbiased(samples):
    ids, log_drawn = samples
    values = np.exp(random(V, seed=3))
    estimates = (values[ids] / np.exp(log_drawn)).sum(axis=1)
    error = estimates.std() / SAMPLES**0.5
    assert abs(estimates.mean() - values.sum()) < 4 * error
    # The estimate for each word is unbiased, too.
    share = np.zeros(V)
    np.add.at(share, ids.ravel(), np.exp(-log_drawn).ravel())
    np.testing.assert_allclose(share / SAMPLES, 1, atol=0.15)


def test_sampled_losses_follow_their_formula(float64):
    vectors, kernel, bias = (
        random(4, U),
        random(U, V, seed=1),
        random(V, seed=2),
    )
    drawn, log_drawn = np.array([7, 2, 9]), np.log([0.9, 0.5, 0.2])
    losses, hits = sampled_word_losses(
        ops.convert_to_tensor(vectors),
        ops.convert_to_tensor(drawn),
        ops.convert_to_tensor(log_drawn),
        tuple(map(ops.convert_to_tensor, (kernel[:, drawn], bias[drawn]))),
        tuple(
            map(
                ops.convert_to_tensor,
                (kernel[:, FEW_TARGETS], bias[FEW_TARGETS]),
            )
        ),
        FEW_TARGETS,
    )
    logits = vectors @ kernel + bias
    for row, target in enumerate(FEW_TARGETS):
        others = [
            (logits[row, i], p)
            for i, p in zip(drawn, (0.9, 0.5, 0.2), strict=True)
            if i != target
        ]
        target_logit = logits[row, target]
        total = np.exp(target_logit) + sum(np.exp(x) / p for x, p in others)
        expected = 0.0 if target == 0 else np.log(total) - target_logit
        assert float(losses[row]) == pytest.approx(expected, abs=1e-12)
        hit = target != 0 and all(target_logit >= x for x, _ in others)
        assert float(hits[row]) == hit


@pytest.mark.slow_after_first
@pytest.mark.parametrize("tied", few_on_jax([None, U, 3], [3]))
@pytest.mark.parametrize("use_bias", [False, True])
def test_sampling_all_words_gives_the_exact_loss(tied, use_bias, float64):
    """Losses and gradients are exact when every word is drawn."""
    embedding = tied and keras.layers.Embedding(V, tied, dtype="float64")
    projection = lk.OutputProjection(
        V, embedding=embedding, use_bias=use_bias, dtype="float64"
    )
    projection.build((None, None, U))
    randomize(projection)
    vectors = keras.Variable(random(2, 2, U), dtype="float64")
    targets = FEW_TARGETS.reshape(2, 2)

    def drawn(size, count, seed):
        return ops.arange(V), ops.zeros((V,), "float64")

    def evaluate(sampled):
        def loss():
            if sampled:
                losses, _ = projection.sampled_losses(
                    vectors + 0, targets, V, None
                )
            else:
                losses, _ = projection.word_losses(vectors + 0, targets)
            return weighted_sum(losses, random(2, 2, seed=4))

        return loss_and_gradients(
            loss, [vectors, *projection.trainable_variables]
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("luong_keras.layers.output_projection.draw_words", drawn)
        estimated, gradients = evaluate(True)
    whole, expected = evaluate(False)
    np.testing.assert_allclose(estimated, whole, rtol=1e-12)
    assert_all_close(gradients, expected, rtol=1e-11, atol=1e-12)


def test_losses_are_estimated_only_in_training():
    projection = lk.OutputProjection(200)
    estimated = lk.WordLosses(projection, sampled=60, seed=1)
    exact = lk.WordLosses(projection)
    vectors, targets = 3 * random(8, 16, U), np.full((8, 16), 5)
    targets[0, 3:] = 0
    losses, hits = exact(vectors, targets)
    same, _ = estimated(vectors, targets)
    np.testing.assert_array_equal(to_numpy(same), to_numpy(losses))
    drawn = [
        to_numpy(estimated(vectors, targets, training=True)[0])
        for _ in range(40)
    ]
    # New words each time, zeros at padding, and close to the exact loss.
    assert not np.allclose(drawn[0], drawn[1])
    assert not np.any(drawn[0][0, 3:])
    np.testing.assert_allclose(
        np.mean(drawn, axis=0)[1:], to_numpy(losses)[1:], atol=0.15
    )
    _, hits = estimated(vectors, targets, training=True)
    assert set(np.unique(to_numpy(hits))) <= {0.0, 1.0}


def test_sample_of_the_whole_vocabulary_is_exact():
    projection = lk.OutputProjection(20)
    losses = lk.WordLosses(projection, sampled=20)
    vectors, targets = random(2, 3, U), np.full((2, 3), 5)
    one = losses(vectors, targets, training=True)[0]
    np.testing.assert_allclose(
        to_numpy(one), to_numpy(losses(vectors, targets)[0]), rtol=1e-5
    )


def test_label_smoothing_is_refused_with_sampling():
    with pytest.raises(ValueError, match="needs the logits of all words"):
        lk.WordLosses(lk.OutputProjection(20), label_smoothing=0.1, sampled=5)
    with pytest.raises(ValueError, match="sampled_softmax=5"):
        lk.config.TrainingConfig(label_smoothing=0.1, sampled_softmax=5)
