"""The cross-entropy of single words."""

from typing import Any

import keras
from keras import ops

from luong_keras.special_tokens import PAD_ID


def masked_cross_entropy(
    logits: Any,
    targets: Any,
    label_smoothing: float = 0.0,
    pad_id: int = PAD_ID,
) -> Any:
    """Compute the cross-entropy of every target word.

    With p = softmax(logits) and smoothing e, the loss of a word y is
    `-(1 - e) log p(y) - e/V sum_v log p(v)`: the mass e lies uniformly on all
    V words. The logarithms are taken in the wider of float32 and the logits'
    own type.

    Args:
        logits: Unnormalised scores, (B, T, V).
        targets: Word ids, (B, T).
        label_smoothing: The mass e, at least 0 and below 1.
        pad_id: The id whose positions give zero.

    Returns:
        The losses, (B, T), in the wider of float32 and the logits' type.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1).

    Example:
        >>> import numpy as np
        >>> logits = np.log([[[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]])
        >>> losses = masked_cross_entropy(logits, np.array([[2, 0]]))
        >>> [f"{p:.3f}" for p in np.exp(-np.array(losses))[0]]
        ['0.700', '1.000']
    """
    check_smoothing(label_smoothing)
    logits = ops.convert_to_tensor(logits)
    logits = ops.cast(logits, at_least_float32(logits.dtype))
    targets = ops.cast(targets, "int32")
    losses = ops.sparse_categorical_crossentropy(
        targets, logits, from_logits=True
    )
    if label_smoothing:
        # -1/V sum_v log p(v), without a second (B, T, V) tensor.
        uniform = ops.logsumexp(logits, -1) - ops.mean(logits, -1)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * uniform
    return ops.where(
        ops.not_equal(targets, pad_id), losses, ops.zeros_like(losses)
    )


def at_least_float32(dtype: Any) -> str:
    """Return the wider of a type and float32.

    Args:
        dtype: The name of a floating-point type.

    Returns:
        `"float32"` or `"float64"`.
    """
    return keras.backend.result_type(dtype, "float32")


def check_smoothing(label_smoothing: float) -> None:
    """Raise unless the smoothing is a probability below 1.

    Args:
        label_smoothing: The mass taken from the right word.

    Raises:
        ValueError: If it is outside [0, 1).
    """
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(
            "`label_smoothing` is the probability taken from the right word: "
            "at least 0 and below 1. Received: "
            f"label_smoothing={label_smoothing}. Use 0.1, for example."
        )
