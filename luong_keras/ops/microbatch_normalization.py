"""Loss normalisation across micro-batches.

A batch may go through the model in parts: one on each device, or one after
the other. The gradient of the whole is the sum of the gradients of the parts'
sums of losses, divided once by the number of words, or of sentences, of the
whole:

    d J = sum_parts d (sum of losses) / sum_parts (number of words)

so within `sum_losses` a loss returns its sum, and leaves its number here.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from keras import ops


class MicrobatchDivisor:
    """The number of words, or of sentences, of one part of a batch.

    Attributes:
        number: the scalar by which the whole is divided once the numbers of
            all parts are added; None where the loss divides by a constant.
        known: whether a loss has said so.
    """

    def __init__(self) -> None:
        self.number: Any = None
        self.known = False


_open: list[MicrobatchDivisor] = []


@contextlib.contextmanager
def sum_losses() -> Iterator[MicrobatchDivisor]:
    """Let the loss of a part return its sum; what divides it is left here."""
    part = MicrobatchDivisor()
    _open.append(part)
    try:
        yield part
    finally:
        _open.remove(part)
    if not part.known:
        raise ValueError(
            "A batch that goes through the model in parts, on several devices "
            "or one after the other, needs a loss that knows what the whole "
            "is divided by. Expected: luong_keras.losses.TranslationLoss or "
            "MaskedSparseCategoricalCrossentropy. Received: another loss."
        )


def divisor(number: Any, constant: bool = False) -> Any:
    """The current divisor of a loss.

    Args:
        number: of the words, or sentences, that the loss sees; or, with
            `constant`, what divides the sum of any part.
        constant: whether the number is the same for the part as for the
            whole.

    Returns:
        The number, at least 1; 1 within `sum_losses`, where the division comes
        later.
    """
    if not _open:
        return number if constant else ops.maximum(number, 1)
    part = _open[-1]
    if part.known:
        raise ValueError(
            "A batch that goes through the model in parts can have one loss. "
            "Received: several. Give `compile` a loss for one output."
        )
    part.known = True
    if constant:
        return number
    part.number = number
    return 1
