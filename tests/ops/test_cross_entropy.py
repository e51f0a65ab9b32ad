import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.ops.cross_entropy import word_losses
from tests.layer_checks import EXACT, check_gradients, random, to_numpy

TARGETS = np.array([[4, 5, 3], [2, 3, 0]])


def reference(logits, targets, smoothing):
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    words = logits.shape[-1]
    wanted = (1 - smoothing) * np.eye(words)[targets] + smoothing / words
    return -(wanted * log_p).sum(-1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pad_id", [0, 3])
def test_losses_and_hits(smoothing, pad_id, float64):
    logits = random(2, 3, 7)
    losses, hits = word_losses(logits, TARGETS, smoothing, pad_id)
    real = pad_id != TARGETS
    expected = reference(logits, TARGETS, smoothing) * real
    np.testing.assert_allclose(losses, expected, **EXACT)
    np.testing.assert_array_equal(
        hits, (logits.argmax(-1) == TARGETS).astype("float64") * real
    )


def test_a_hit_is_the_most_probable_word():
    logits = np.full((1, 3, 4), -1.0, "float32")
    logits[0, 0, 2] = logits[0, 1, 3] = 1.0
    _, hits = word_losses(logits, np.array([[2, 2, 0]]))
    assert to_numpy(hits).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_extreme_logits_give_finite_losses_in_float32(dtype):
    logits = ops.cast([[[6e4, 0.0, -6e4, 0.0]] * 2], dtype)
    losses, _ = word_losses(logits, np.array([[2, 0]]))
    exact = to_numpy(logits)[0, 0]
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    np.testing.assert_allclose(losses, [[exact[0] - exact[2], 0]], rtol=1e-6)


def test_padding_never_shows():
    logits = random(1, 2, 4).astype("float32")
    logits[0, 1] = np.nan
    losses, hits = word_losses(logits, np.array([[2, 0]]))
    assert to_numpy(losses)[0, 1] == to_numpy(hits)[0, 1] == 0


def test_gradients(float64):
    logits = keras.Variable(random(2, 3, 7), dtype="float64")

    def loss():
        losses, _ = word_losses(logits + 0, TARGETS, label_smoothing=0.1)
        return ops.sum(ops.square(losses))

    check_gradients(loss, [logits])
