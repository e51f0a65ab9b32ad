"""The training objective, of word losses or of logits."""

from typing import Any

import keras
from keras import ops

from luong_keras.config.checks import (
    check_choice,
    check_fraction,
    check_integers,
)
from luong_keras.ops.cross_entropy import (
    check_targets,
    masked_cross_entropy,
    word_weights,
)
from luong_keras.ops.devices import check_one_replica
from luong_keras.ops.masking import wider_dtype
from luong_keras.ops.microbatch_normalization import divisor
from luong_keras.special_tokens import PAD_ID

NORMALIZATIONS = ("sentence", "word")


@keras.saving.register_keras_serializable(package="luong_keras")
class TranslationLoss(keras.losses.Loss):
    """Objective of training, computed from the loss of each word.

    `"sentence"` is the objective of the paper, the sum over the words of a
    pair and the mean over the pairs of a batch; `"word"` is the mean over the
    words without padding:

        J = 1/B  sum_pairs -log p(y | x)          (section 2, eq. 4)
        J = sum_pairs -log p(y | x) / sum_pairs |y|

    With `nominal_batch_size`, `"sentence"` divides by that constant, and a
    short last batch takes a proportionally smaller step, as in the authors'
    code. A mask that Keras attached to `y_pred` is ignored: only `y_true` marks
    padding, and nothing is masked or averaged twice.

    A row of padding only does not count as a sentence: such rows fill up a
    batch that several devices share.

    As in the losses of Keras, weights multiply the losses but not the divisor,
    which is the number of sentences or words whatever their weights.

    Args:
        normalization: `"sentence"` or `"word"`.
        nominal_batch_size: The divisor of `"sentence"`; `None` divides by the
            number of sentences in the batch, without rows of padding.
        pad_id: The target id of padding.
        name: The name of the loss.
        dtype: The type of the computation; by default the wider of float32
            and `keras.config.floatx()`.

    Call arguments:
        y_true: Target ids, `target_out`, (B, T).
        y_pred: The word losses, (B, T).
        sample_weight: Optional weight of each sentence, (B,), or of each word,
            (B, T).

    Output:
        A scalar.

    Raises:
        ValueError: If `normalization` is unknown, or `nominal_batch_size` is
            given with `"word"` or is not positive; in a call, if the shapes
            do not match, or in one of several replicas of `tf.distribute`.

    Example:
        >>> import numpy as np
        >>> target_out = np.array([[4, 5, 3], [6, 3, 0]])
        >>> word_losses = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]])
        >>> float(TranslationLoss()(target_out, word_losses))
        7.5
        >>> float(TranslationLoss("word")(target_out, word_losses))
        3.0

    Reference:
        Luong et al., 2015, Effective Approaches to Attention-based Neural
        Machine Translation.
    """

    def __init__(
        self,
        normalization: str = "sentence",
        nominal_batch_size: int | None = None,
        pad_id: int = PAD_ID,
        name: str = "translation_loss",
        dtype: Any = None,
    ) -> None:
        check_choice(NORMALIZATIONS, normalization=normalization)
        check_integers(optional=True, nominal_batch_size=nominal_batch_size)
        if nominal_batch_size is not None and normalization != "sentence":
            raise ValueError(
                "`nominal_batch_size` is the number of sentences that "
                "normalization='sentence' divides by. Received: normalization="
                f"{normalization!r}, nominal_batch_size={nominal_batch_size}. "
                "Leave it out to divide by what the batch holds."
            )
        super().__init__(
            name=name,
            reduction=None,  # `call` divides the sum.
            dtype=dtype or wider_dtype(keras.config.floatx()),
        )
        self.normalization = normalization
        self.nominal_batch_size = nominal_batch_size
        self.pad_id = pad_id

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None):
        """Return the loss of a batch; see the class."""
        check_one_replica()
        # A new tensor without the `_keras_mask` of `y_pred`, which the base
        # class would apply to the sum.
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        y_true = ops.convert_to_tensor(y_true)
        check_targets(
            y_true,
            y_pred,
            "BT",
            "For logits (B, T, V) use `MaskedSparseCategoricalCrossentropy`.",
        )
        is_word = ops.not_equal(y_true, self.pad_id)
        if sample_weight is not None:
            weights = word_weights(sample_weight, y_true)
            is_word = ops.logical_and(is_word, ops.not_equal(weights, 0))
            y_pred = y_pred * ops.cast(weights, y_pred.dtype)
        y_pred = ops.where(is_word, y_pred, ops.zeros_like(y_pred))
        return super().__call__(y_true, y_pred)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the sum of the losses (B, T), divided as the class says."""
        # By sentence first: rows of padding do not change the sum.
        total = ops.sum(ops.sum(y_pred, axis=-1))
        if self.nominal_batch_size is not None:
            return total / divisor(self.nominal_batch_size, constant=True)
        counted = ops.not_equal(y_true, self.pad_id)
        if self.normalization == "sentence":
            counted = ops.any(counted, axis=-1)
        return total / divisor(ops.sum(ops.cast(counted, total.dtype)))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {
            "normalization": self.normalization,
            "nominal_batch_size": self.nominal_batch_size,
            "pad_id": self.pad_id,
            "name": self.name,
            "dtype": self.dtype,
        }


@keras.saving.register_keras_serializable(package="luong_keras")
class MaskedSparseCategoricalCrossentropy(TranslationLoss):
    """`TranslationLoss` for a model that returns logits.

    It is `masked_cross_entropy` followed by `TranslationLoss`, for
    `compile(loss=...)` of any model from token ids to logits.

    Args:
        normalization: `"sentence"` or `"word"`, see `TranslationLoss`.
        label_smoothing: The mass spread uniformly over the vocabulary.
        nominal_batch_size: See `TranslationLoss`.
        pad_id: The target id of padding.
        name: The name of the loss.
        dtype: See `TranslationLoss`.

    Call arguments:
        y_true: Target ids, (B, T).
        y_pred: Logits, (B, T, V).
        sample_weight: Optional weight of each sentence, (B,), or of each word,
            (B, T).

    Output:
        A scalar.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import numpy as np
        >>> loss = MaskedSparseCategoricalCrossentropy("word")
        >>> logits = np.zeros((1, 3, 8), "float32")
        >>> round(float(loss(np.array([[5, 3, 0]]), logits)), 4)  # log 8
        2.0794
    """

    def __init__(
        self,
        normalization: str = "sentence",
        label_smoothing: float = 0.0,
        nominal_batch_size: int | None = None,
        pad_id: int = PAD_ID,
        name: str = "masked_sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        check_fraction(label_smoothing=label_smoothing)
        super().__init__(
            normalization=normalization,
            nominal_batch_size=nominal_batch_size,
            pad_id=pad_id,
            name=name,
            dtype=dtype,
        )
        self.label_smoothing = label_smoothing

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None):
        """Return the loss of a batch; see the class."""
        y_true, y_pred = map(ops.convert_to_tensor, (y_true, y_pred))
        check_targets(
            y_true,
            y_pred,
            "BTV",
            "For losses of words (B, T) use `TranslationLoss`.",
        )
        y_pred = masked_cross_entropy(
            y_pred, y_true, self.label_smoothing, self.pad_id
        )
        return super().__call__(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
        }
