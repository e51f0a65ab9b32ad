import keras
import numpy as np
import pytest

from luong_keras.ops.cross_entropy import masked_cross_entropy
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import (
    TokenAccuracy,
    TokenCount,
    TokenPerplexity,
)

TARGETS = np.array([[4, 5, 3], [2, 3, 0]], "int32")
LOGITS = np.random.default_rng(0).normal(size=(2, 3, 7)).astype("float32")


def test_metrics_average_over_tokens_not_batches():
    perplexity, accuracy = TokenPerplexity(), TokenAccuracy()
    # Of batches of 3 tokens and 1 token, the mean is (1 + 2 + 3 + 10) / 4.
    perplexity.update_state([[4, 4, 4]], [[1.0, 2.0, 3.0]])
    perplexity.update_state([[4, 0, 0]], [[10.0, np.nan, 5.0]])
    accuracy.update_state([[4, 4, 4]], [[1.0, 1.0, 0.0]])
    accuracy.update_state([[4, 0, 0]], [[1.0, 1.0, 1.0]])
    assert float(perplexity.result()) == pytest.approx(np.exp(4))
    assert float(accuracy.result()) == pytest.approx(3 / 4)


@pytest.mark.parametrize("floatx", ["float32", "bfloat16"])
def test_sums_are_not_rounded_to_the_default_type(floatx):
    keras.config.set_floatx(floatx)
    try:
        count, accuracy = TokenCount(), TokenAccuracy()
        count.tokens.assign(2**24)
        for targets in (np.ones((1, 256)), np.ones((1, 1))):
            count.update_state(targets)
            accuracy.update_state(targets, targets)
        accuracy.update_state([[1]], [[0.0]])
        assert int(count.result()) == 2**24 + 257
        assert float(accuracy.result()) == pytest.approx(257 / 258)
    finally:
        keras.config.set_floatx("float32")


def test_metrics_accept_logits():
    perplexity = TokenPerplexity(from_logits=True)
    perplexity.update_state(TARGETS, LOGITS)
    losses = np.array(masked_cross_entropy(LOGITS, TARGETS))
    expected = np.exp(losses.sum() / 5)
    assert float(perplexity.result()) == pytest.approx(expected, rel=1e-5)

    accuracy = TokenAccuracy(from_logits=True)
    hits = (LOGITS.argmax(-1) == TARGETS)[TARGETS != 0]
    # One forced hit, so that the fraction is not trivially zero.
    logits = LOGITS.copy()
    logits[0, 1, 5] = 9.0
    hits[1] = True
    accuracy.update_state(TARGETS, logits)
    assert float(accuracy.result()) == pytest.approx(hits.mean())


def test_ties_count_as_hits():
    accuracy = TokenAccuracy(from_logits=True)
    accuracy.update_state(TARGETS, np.zeros((2, 3, 7)))
    assert float(accuracy.result()) == 1.0


@pytest.mark.parametrize("metric", [TokenPerplexity, TokenAccuracy])
@pytest.mark.parametrize("pad_id", [-1, -100, 999])
def test_padding_need_not_be_in_the_vocabulary(metric, pad_id):
    values = []
    for pad in (0, pad_id):
        made = metric(from_logits=True, pad_id=pad)
        made.update_state(np.where(TARGETS == 0, pad, TARGETS), LOGITS)
        values.append(float(made.result()))
    assert values[0] == values[1]


def test_tokens_can_be_weighted():
    for weights in ([1.0, 0.5], [[1.0] * 3, [0.5] * 3]):
        accuracy = TokenAccuracy()
        accuracy.update_state(TARGETS, [[1, 1, 0], [1, 0, 1]], weights)
        assert float(accuracy.result()) == pytest.approx(2.5 / 4)


@pytest.mark.parametrize("metric", [TokenPerplexity, TokenAccuracy])
def test_wrong_shapes_and_arguments_are_refused(metric):
    for shape in ((), (3,), (2, 4), (2, 3, 1)):
        with pytest.raises(ValueError, match="`sample_weight`"):
            metric().update_state(TARGETS, np.ones((2, 3)), np.ones(shape))
    with pytest.raises(ValueError, match="from_logits=False"):
        metric().update_state(TARGETS, LOGITS)
    with pytest.raises(ValueError, match="from_logits=True"):
        metric(from_logits=True).update_state(TARGETS, np.ones((2, 3)))


@pytest.mark.slow
def test_evaluate_applies_metrics_per_output():
    losses, hits = keras.Input((3,)), keras.Input((3,))
    outputs = {
        "word_losses": keras.layers.Identity(name="word_losses")(losses),
        "hits": keras.layers.Identity(name="hits")(hits),
    }
    model = keras.Model([losses, hits], outputs)
    model.compile(
        loss={"word_losses": TranslationLoss(), "hits": None},
        metrics={
            "word_losses": [TokenPerplexity(), TokenCount()],
            "hits": [TokenAccuracy()],
        },
        jit_compile=keras.backend.backend() == "jax",
    )
    inputs = [np.ones((2, 3)), np.array([[1, 1, 0], [1, 0, 1]])]
    targets = {"word_losses": TARGETS, "hits": TARGETS}
    logs = model.evaluate(inputs, targets, verbose=0, return_dict=True)
    assert logs["word_losses_perplexity"] == pytest.approx(np.e)
    assert logs["word_losses_words"] == 5
    assert logs["loss"] == 5 / 2
    assert logs["hits_accuracy"] == pytest.approx(3 / 5)
