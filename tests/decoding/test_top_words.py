import numpy as np
import pytest
from keras import ops

from luong_keras.decoding.top_words import BLOCK, top_k, top_words
from tests.decoding.toy_step import log_softmax
from tests.layer_checks import random, to_numpy

tensorflow = pytest.mark.tensorflow


def plain_top_k(values, k):
    """Sort stably: of equal values the lowest index comes first."""
    index = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(values, index, axis=-1), index


def check_top_k(values, k, function=top_k):
    found, index = function(ops.convert_to_tensor(values), k)
    expected, places = plain_top_k(values, k)
    np.testing.assert_array_equal(to_numpy(found), expected)
    np.testing.assert_array_equal(to_numpy(index), places)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "size, k",
    [
        (3, 3),
        (BLOCK, 2),
        (8 * BLOCK, 2),  # the largest without blocks
        (8 * BLOCK + 1, 2),
        (20 * BLOCK - 1, 3),
        (20 * BLOCK, 1),
        (50 * BLOCK + 7, 12),
    ],
)
@pytest.mark.parametrize("levels", [None, 50, 3, 1])
def test_top_k_by_blocks_equals_a_plain_sort(size, k, levels):
    values = random(2, 3, size, seed=size)
    if levels is not None:
        # Few distinct values, so that many are equal, also across blocks.
        values = np.floor(values * levels / 8)
    check_top_k(values.astype("float32"), k)


@tensorflow
@pytest.mark.parametrize("size", [5, BLOCK, BLOCK + 1, 700, 30 * BLOCK])
def test_top_k_of_unknown_size_in_a_graph(size):
    import tensorflow as tf

    values = np.floor(random(2, 3, size, seed=size) * 20).astype("float32")
    signature = [tf.TensorSpec([None, None, None])]

    @tf.function(input_signature=signature, autograph=False)
    def best_five(values):
        return top_k(values, 5)

    check_top_k(values, 5, lambda values, _: best_five(values))


def test_impossible_words_come_last_in_order():
    size = 30 * BLOCK + 3
    values = np.full((1, 3, size), -np.inf, "float32")
    values[0, 1, [size - 1, 70, 5 * BLOCK]] = 1, 2, 1
    # In the second and third rows, impossible words fill the list.
    values[0, 2, BLOCK] = 0
    check_top_k(values, 5)


@pytest.mark.parametrize("size", [9, 40 * BLOCK + 1])
def test_probabilities_are_normalised_over_all_words(size):
    logits = 5 * random(2, 3, size) + 300
    expected, ids = plain_top_k(log_softmax(logits), 4)
    gains, words = top_words(logits.astype("float32"), 4)
    np.testing.assert_allclose(to_numpy(gains), expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(to_numpy(words), ids)


@pytest.mark.parametrize("size", [9, 40 * BLOCK + 1])
def test_suppressed_words_come_last_without_renormalisation(size):
    logits = random(2, 3, size)
    best = np.argmax(logits, axis=-1)
    suppressed = (np.arange(size) == best[0, 0]) | np.zeros((2, 1, size), bool)
    expected = np.where(suppressed, -1e30, log_softmax(logits))
    expected, ids = plain_top_k(expected, 4)
    gains, words = top_words(logits.astype("float32"), 4, suppressed)
    np.testing.assert_allclose(to_numpy(gains), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(to_numpy(words), ids)
    only = np.arange(size) != 7
    gains, words = top_words(logits.astype("float32"), 2, only)
    assert (to_numpy(words)[..., 0] == 7).all()
    np.testing.assert_allclose(
        to_numpy(gains)[..., 0], log_softmax(logits)[..., 7], rtol=1e-5
    )
    assert (to_numpy(gains)[..., 1] < -1e29).all()
