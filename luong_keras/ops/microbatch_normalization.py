"""Loss normalisation across micro-batches.

A batch may go through the model in parts (micro-batches): one per device, or
one after the other. The gradient of the batch is the sum of the gradients of
the parts' loss sums, divided once by the number of words, or of sentences, of
the batch:

    d J = sum_parts d (sum of losses) / sum_parts (number of words)

Within `sum_losses`, a loss therefore returns its sum and records its number.
The open part belongs to the thread, so that threads may train models at once.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from keras import ops

_open_part: ContextVar[list[Any] | None] = ContextVar(
    "luong_keras_part", default=None
)


@contextlib.contextmanager
def sum_losses() -> Iterator[list[Any]]:
    """Let the loss of a part return its sum.

    Yields:
        A list to which the loss adds one number of words, or of sentences, to
        be added up over all parts to the divisor of the batch; None if it
        divides by a constant.
    """
    part: list[Any] = []
    token = _open_part.set(part)
    try:
        yield part
    finally:
        _open_part.reset(token)
    if not part:
        raise ValueError(
            "A batch that is processed in parts, on several devices or one "
            "after the other, needs a loss that knows the divisor of the "
            "whole batch. Expected: luong_keras.losses.TranslationLoss or "
            "MaskedSparseCategoricalCrossentropy. Received: another loss."
        )


def is_open() -> bool:
    """Test whether this thread runs inside `sum_losses`."""
    return _open_part.get() is not None


def divisor(number: Any, constant: bool = False) -> Any:
    """Return the number by which a loss divides its sum now.

    Args:
        number: The number of words, or sentences, that the loss sees; with
            `constant`, the divisor of the sum of any part.
        constant: Whether the number is the same for a part and the batch.

    Returns:
        A constant number itself. Otherwise the number, at least 1, or 1 within
        `sum_losses`, because the division follows later.
    """
    part = _open_part.get()
    if part is None:
        return number if constant else ops.maximum(number, 1)
    if part:
        raise ValueError(
            "A batch that is processed in parts can have only one loss. "
            "Received: several. Give `compile` a loss for one output."
        )
    part.append(None if constant else number)
    return number if constant else 1
