"""Perplexity, accuracy and count of the target tokens of an epoch."""

from typing import Any

import keras
from keras import ops

from luong_keras.ops import masking
from luong_keras.ops.cross_entropy import (
    check_targets,
    masked_cross_entropy,
    word_hits,
    word_weights,
)
from luong_keras.special_tokens import PAD_ID


class _TokenMean(keras.metrics.Metric):
    """Mean of a value over the target tokens, without padding.

    Subclasses compute the value of each token from logits.
    """

    def __init__(
        self, from_logits: bool, pad_id: int, name: str, dtype: Any
    ) -> None:
        dtype = dtype or masking.wider_dtype(keras.config.floatx())
        super().__init__(name=name, dtype=dtype)
        self.from_logits = from_logits
        self.pad_id = pad_id
        self.total, self.tokens = (
            self.add_variable((), "zeros", dtype=self.dtype, name=variable)
            for variable in ("total", "tokens")
        )

    def _compute(self, y_true: Any, logits: Any) -> Any:
        raise NotImplementedError

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: Target ids, (B, T).
            y_pred: The value of each token, (B, T), or logits, (B, T, V).
            sample_weight: Optional weights, (B,) or (B, T). The mean is
                divided by their sum.

        Raises:
            ValueError: If the shapes do not match.
        """
        y_true, y_pred = map(ops.convert_to_tensor, (y_true, y_pred))
        check_targets(
            y_true,
            y_pred,
            "BTV" if self.from_logits else "BT",
            "Set `from_logits` to say whether `y_pred` are logits (B, T, V). "
            f"Received: from_logits={self.from_logits}.",
        )
        values = self._compute(y_true, y_pred) if self.from_logits else y_pred
        values = ops.cast(values, self.dtype)
        weights = ops.cast(ops.not_equal(y_true, self.pad_id), self.dtype)
        if sample_weight is not None:
            weights = weights * ops.cast(
                word_weights(sample_weight, y_true), self.dtype
            )
        # `where`, because values at padding must not count, even NaN.
        values = ops.where(
            ops.equal(weights, 0), ops.zeros_like(values), values * weights
        )
        self.total.assign_add(ops.sum(values))
        self.tokens.assign_add(ops.sum(weights))

    def result(self) -> Any:
        """Return the mean over the tokens so far, 0 before the first."""
        return ops.divide_no_nan(self.total, self.tokens)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {
            **super().get_config(),
            "from_logits": self.from_logits,
            "pad_id": self.pad_id,
        }


@keras.saving.register_keras_serializable(package="luong_keras")
class TokenPerplexity(_TokenMean):
    """Exponential of the mean negative log-likelihood of a target token.

    A token is an entry of the target vocabulary: a word, a subword or `</s>`.
    The sums run over a whole epoch, so each batch counts by its number of
    tokens. The metric does not change losses: with label smoothing the result
    is the exponential of the smoothed loss, which is not a perplexity. Give
    losses without smoothing, or the logits.

    Args:
        from_logits: Whether `y_pred` are logits, (B, T, V), and not the
            negative log-likelihoods of the tokens, (B, T).
        pad_id: The target id of padding.
        name: The name of the metric.
        dtype: The type of the sums; when None, the wider of float32 and the
            default of Keras.

    Example:
        >>> import numpy as np
        >>> metric = TokenPerplexity()
        >>> losses = np.log([[2.0, 8.0, 1.0]])
        >>> metric.update_state(np.array([[7, 3, 0]]), losses)
        >>> round(float(metric.result()), 4)
        4.0
    """

    def __init__(
        self,
        from_logits: bool = False,
        pad_id: int = PAD_ID,
        name: str = "perplexity",
        dtype: Any = None,
    ) -> None:
        super().__init__(from_logits, pad_id, name, dtype)

    def _compute(self, y_true: Any, logits: Any) -> Any:
        return masked_cross_entropy(logits, y_true, pad_id=self.pad_id)

    def result(self) -> Any:
        """Return the perplexity so far, 1 before the first token."""
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="luong_keras")
class TokenAccuracy(_TokenMean):
    """Fraction of target tokens that got the highest score.

    A token that shares the highest score with other tokens counts too: if all
    logits are equal, the accuracy is 1.

    Args:
        from_logits: Whether `y_pred` are logits, (B, T, V), and not hits,
            (B, T), 1 where the best token is the target and 0 elsewhere.
        pad_id: The target id of padding.
        name: The name of the metric.
        dtype: The type of the sums; when None, the wider of float32 and the
            default of Keras.

    Example:
        >>> import numpy as np
        >>> metric = TokenAccuracy()
        >>> hits = np.array([[1.0, 0.0, 1.0]])
        >>> metric.update_state(np.array([[7, 3, 0]]), hits)
        >>> float(metric.result())
        0.5
    """

    def __init__(
        self,
        from_logits: bool = False,
        pad_id: int = PAD_ID,
        name: str = "accuracy",
        dtype: Any = None,
    ) -> None:
        super().__init__(from_logits, pad_id, name, dtype)

    def _compute(self, y_true: Any, logits: Any) -> Any:
        return word_hits(logits, y_true, self.pad_id)


@keras.saving.register_keras_serializable(package="luong_keras")
class TokenCount(keras.metrics.Metric):
    """Number of target tokens, without padding.

    `TokensPerSecond` divides the number by the time of the epoch.

    Args:
        pad_id: The target id of padding.
        name: The name of the metric.
        dtype: The type of the sum; when None, an integer, which on JAX and
            torch holds up to 2^31 tokens of an epoch.

    Example:
        >>> import numpy as np
        >>> metric = TokenCount()
        >>> metric.update_state(np.array([[7, 8, 3], [9, 3, 0]]))
        >>> int(metric.result())
        5
    """

    def __init__(
        self, pad_id: int = PAD_ID, name: str = "words", dtype: Any = None
    ) -> None:
        super().__init__(name=name, dtype=dtype or masking.INDEX_DTYPE)
        self._given_dtype = dtype
        self.pad_id = pad_id
        self.tokens = self.add_variable(
            (), "zeros", dtype=self.dtype, name="tokens"
        )

    def update_state(
        self, y_true: Any, y_pred: Any = None, sample_weight: Any = None
    ) -> None:
        """Add a batch of target ids, (B, T); other arguments are ignored."""
        tokens = ops.cast(ops.not_equal(y_true, self.pad_id), self.dtype)
        self.tokens.assign_add(ops.sum(tokens))

    def result(self) -> Any:
        """Return the number of tokens so far."""
        # A copy, because the variable itself would change later.
        return ops.convert_to_tensor(self.tokens) + 0

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        # The default differs between backends.
        values = {"pad_id": self.pad_id, "dtype": self._given_dtype}
        return super().get_config() | values
