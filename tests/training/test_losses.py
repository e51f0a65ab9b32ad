import keras
import numpy as np
import pytest

from luong_keras.models.training_model import TrainingModel
from luong_keras.ops.cross_entropy import masked_cross_entropy
from luong_keras.training.losses import (
    MaskedSparseCategoricalCrossentropy,
    TranslationLoss,
)
from luong_keras.training.metrics import TokenPerplexity
from tests.layer_checks import reference_word_losses, to_numpy
from tests.training.fit_helpers import JIT

TARGETS = np.array([[4, 5, 3], [2, 3, 0]], "int32")
WORD_LOSSES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]], "float32")
# The sum is 15, over 2 sentences and 5 words.
CASES = [
    ({"normalization": "sentence"}, 15 / 2),
    ({"normalization": "sentence", "nominal_batch_size": 4}, 15 / 4),
    ({"normalization": "word"}, 15 / 5),
]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_cross_entropy_matches_numpy_with_label_smoothing(smoothing, dtype):
    logits = np.random.default_rng(0).normal(size=(2, 3, 7)) * 20
    logits = keras.ops.cast(logits, dtype)
    losses = masked_cross_entropy(logits, TARGETS, smoothing)
    expected = reference_word_losses(to_numpy(logits), TARGETS, smoothing)
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    np.testing.assert_allclose(losses, expected * (TARGETS != 0), rtol=1e-5)


@pytest.mark.parametrize("options, expected", CASES)
def test_losses_are_normalised_and_ignore_padding(options, expected):
    loss = TranslationLoss(**options)
    assert float(loss(TARGETS, WORD_LOSSES)) == pytest.approx(expected)
    again = TranslationLoss.from_config(loss.get_config())
    garbage = WORD_LOSSES.copy()
    garbage[1, 2] = np.nan  # padding
    assert float(again(TARGETS, garbage)) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_losses_are_summed_in_float32(dtype):
    losses = keras.ops.full((2, 700), 128.5, dtype=dtype)
    number = float(losses[0, 0])
    found = TranslationLoss()(np.ones((2, 700), "int32"), losses)
    # exceeds the largest float16, 65,504
    assert float(found) == 700 * number


@pytest.mark.parametrize("options, expected", CASES)
def test_rows_of_padding_are_not_counted_as_sentences(options, expected):
    loss = TranslationLoss(**options)
    rows = [(0, 2), (0, 0)]
    losses = np.pad(WORD_LOSSES, rows, constant_values=np.nan)
    found = loss(np.pad(TARGETS, rows), losses)
    # equal bit for bit to the batch without padding rows
    assert float(found) == float(loss(TARGETS, WORD_LOSSES))
    assert float(found) == pytest.approx(expected)
    assert float(loss(np.zeros((2, 3), "int32"), losses[2:])) == 0


class FirstUnit(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs):
        return inputs[..., 0]


def one_weight_model(optimizer, loss):
    """Return a model whose word losses equal one weight, and its layer."""
    ids = keras.Input((None,), dtype="int32")
    ones = keras.layers.Embedding(
        6, 1, embeddings_initializer="ones", mask_zero=True, trainable=False
    )(ids)
    weight = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Model(ids, FirstUnit()(weight(ones)))
    assert model(TARGETS)._keras_mask is not None
    model.compile(optimizer, loss, jit_compile=JIT)
    return model, weight


@pytest.mark.slow_after_first
@pytest.mark.parametrize("options, expected", CASES)
@pytest.mark.parametrize("scaled", [False, True])
def test_fit_minimises_exactly_this_loss(options, expected, scaled):
    # The losses are five times the weight 1, so loss and gradient are
    # 5 / divisor, whatever mask the outputs carry.
    optimizer = keras.optimizers.SGD(1.0)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model, weight = one_weight_model(optimizer, TranslationLoss(**options))
    history = model.fit(TARGETS, TARGETS, batch_size=2, verbose=0)
    gradient = expected * 5 / 15
    assert history.history["loss"][0] == pytest.approx(gradient)
    assert float(weight.kernel[0, 0]) == pytest.approx(1 - gradient)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pad_id", [-1, -100, 999])
def test_padding_need_not_be_in_the_vocabulary(smoothing, pad_id):
    logits = np.random.default_rng(1).normal(size=(2, 3, 7)).astype("float32")
    values = [
        float(
            MaskedSparseCategoricalCrossentropy(
                label_smoothing=smoothing, pad_id=pad
            )(np.where(TARGETS == 0, pad, TARGETS), logits)
        )
        for pad in (0, pad_id)
    ]
    assert values[0] == values[1]


def test_the_loss_of_logits_equals_the_loss_of_word_losses():
    logits = np.random.default_rng(1).normal(size=(2, 3, 7)).astype("float32")
    for options, _ in CASES:
        both = MaskedSparseCategoricalCrossentropy(
            label_smoothing=0.1, **options
        )
        both = keras.losses.deserialize(keras.losses.serialize(both))
        losses = masked_cross_entropy(logits, TARGETS, 0.1)
        expected = float(TranslationLoss(**options)(TARGETS, losses))
        assert float(both(TARGETS, logits)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"normalization": "batch"}, "normalization='batch'"),
        ({"nominal_batch_size": 0}, "nominal_batch_size=0"),
        ({"normalization": "word", "nominal_batch_size": 8}, "'word'"),
    ],
)
def test_wrong_normalizations_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TranslationLoss(**options)


def test_wrong_smoothing_is_refused():
    with pytest.raises(ValueError, match=r"label_smoothing=1\.0"):
        MaskedSparseCategoricalCrossentropy(label_smoothing=1.0)


WORD_WEIGHTS = np.array([[1.0, 0.0, 2.0], [0.5, 4.0, 9.0]], "float32")


@pytest.mark.parametrize("options, divided", CASES)
@pytest.mark.parametrize("square", [False, True])
def test_words_can_be_weighted(options, divided, square):
    rows = [0, 1, 0] if square else [0, 1]
    targets, losses, weights = (
        x[rows] for x in (TARGETS, WORD_LOSSES, WORD_WEIGHTS)
    )
    weighted = (losses * weights * (targets != 0)).sum()
    # The divisor is the same as without weights.
    loss = TranslationLoss(**options)
    divisor = options.get("nominal_batch_size", len(rows))
    if options["normalization"] == "word":
        divisor = (targets != 0).sum()
    assert float(loss(targets, losses)) == pytest.approx(losses.sum() / divisor)
    garbage = np.where((targets == 0) | (weights == 0), np.inf, losses)
    for given in (losses, garbage):
        found = loss(targets, given, sample_weight=weights)
        assert float(found) == pytest.approx(weighted / divisor)
    logits = np.random.default_rng(0).normal(size=(*targets.shape, 7))
    losses = np.array(masked_cross_entropy(logits, targets))
    found = MaskedSparseCategoricalCrossentropy(**options)(
        targets, logits, sample_weight=weights
    )
    weighted = (losses * weights * (targets != 0)).sum()
    assert float(found) == pytest.approx(weighted / divisor, rel=1e-5)


@pytest.mark.parametrize(
    "shape", [(), (3,), (3, 3), (2, 4), (2, 3, 1), (1, 2, 3)]
)
def test_weights_of_another_shape_are_refused(shape):
    for loss, given in (
        (TranslationLoss(), WORD_LOSSES),
        (MaskedSparseCategoricalCrossentropy("word"), np.zeros((2, 3, 7))),
    ):
        with pytest.raises(ValueError, match=r"`sample_weight`.*\(2, 3\)"):
            loss(TARGETS, given, sample_weight=np.ones(shape))


def test_logits_and_word_losses_are_distinguished():
    with pytest.raises(ValueError, match="MaskedSparseCategoricalCrossent"):
        TranslationLoss()(TARGETS, np.zeros((2, 3, 7)))
    with pytest.raises(ValueError, match="`TranslationLoss`"):
        MaskedSparseCategoricalCrossentropy()(TARGETS, WORD_LOSSES)
    with pytest.raises(ValueError, match=r"y_pred.shape=\(2, 2\)"):
        TranslationLoss()(TARGETS, WORD_LOSSES[:, :2])


def weighted_model(parts):
    """Build a model of one embedding table, trained in micro-batches."""
    ids = keras.Input((None,), dtype="int32")
    table = keras.layers.Embedding(6, 6, embeddings_initializer="uniform")
    model = TrainingModel(ids, table(ids))
    model.microbatches = parts
    model.compile(
        keras.optimizers.SGD(0.0),
        MaskedSparseCategoricalCrossentropy("word"),
        weighted_metrics=[TokenPerplexity(from_logits=True)],
    )
    return model


@pytest.mark.parametrize("weights", [WORD_WEIGHTS, WORD_WEIGHTS[:, 0]])
@pytest.mark.parametrize("parts", [1, 2])
def test_fit_applies_weights_of_words_and_sentences(weights, parts):
    if parts > 1 and keras.backend.backend() == "torch":
        pytest.skip("no micro-batches on torch")
    model = weighted_model(parts)
    losses = np.array(masked_cross_entropy(model(TARGETS), TARGETS))
    word_weights = weights if weights.ndim == 2 else weights[:, None]
    word_weights = word_weights * (TARGETS != 0)
    logs = model.fit(TARGETS, TARGETS, 2, sample_weight=weights, verbose=0)
    total = (losses * word_weights).sum()
    assert logs.history["loss"][0] == pytest.approx(total / 5, rel=1e-5)
    mean = np.exp(total / word_weights.sum())
    assert logs.history["perplexity"][0] == pytest.approx(mean, rel=1e-5)
