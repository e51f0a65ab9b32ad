"""Notices a run whose numbers are none any more."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from luong_keras.training.monitoring import Stateful
from luong_keras.training.optimizers import NONFINITE


class NonFiniteError(ArithmeticError):
    """The gradient, the loss or the weights of a run are NaN or infinite."""


class StopOnNonFinite(Stateful):
    """Stop a run at a NaN or an infinity; or count the steps skipped for one.

    The device notes such a step (`make_optimizer(on_nonfinite=...)`), and this
    callback reads the note every few batches, since reading waits for the
    device. It stands before the one that saves the snapshot, which therefore
    never holds such numbers.

    Under float16 a gradient that overflows is no divergence: the optimizer
    that scales the loss skips the step and halves the scale. Only where the
    scale has come down below 1 the run stops.

    Args:
        every_steps: Batches between two looks.
        most_skipped: The steps that may be skipped in a run before it stops;
            of no use where the optimizer does not skip.
        describe: A function of a global step that says what is in its batch,
            for the message.

    Raises:
        NonFiniteError: While training, with the epoch, the step and the batch.

    Example:
        >>> StopOnNonFinite(every_steps=10).get_state()
        {'skipped': 0}
    """

    saved = ("skipped",)

    def __init__(
        self,
        every_steps: int = 50,
        most_skipped: int = 100,
        describe: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__()
        self.every_steps = every_steps
        self.most_skipped = most_skipped
        self.describe = describe
        self.skipped = 0
        self._seen = 0
        self._epoch = 0
        self._batch = -1

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Remember the epoch."""
        self._epoch = epoch

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Look, now and then."""
        self._batch = batch
        if (batch + 1) % self.every_steps == 0:
            self.look()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Look, and add the number of skipped steps to the logs."""
        self.look()
        if self.skipped and logs is not None:
            logs["skipped_steps"] = float(self.skipped)

    def look(self) -> None:
        """Raise where a step was not finite that must not be skipped."""
        optimizer = self.model.optimizer
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is not None and float(_number(scale)) < 1:
            raise NonFiniteError(
                f"Epoch {self._epoch + 1}: the gradient overflows float16 "
                "however small the loss is scaled, so the run has diverged. "
                f"{_ADVICE}"
            )
        if getattr(inner, "nonfinite_steps", None) is None:
            return
        count = int(_number(inner.nonfinite_steps))
        new, self._seen = count - self._seen, count
        if not new:
            return
        first = int(_number(inner.first_nonfinite))
        # Of a batch there is one iteration.
        behind = int(_number(inner.iterations)) - 1 - first
        if inner.on_nonfinite != "skip":
            raise NonFiniteError(self._message(self._batch - behind))
        self.skipped += new
        if self.skipped > self.most_skipped:
            raise NonFiniteError(
                f"{self.skipped} steps were skipped for a gradient that is "
                f"NaN or infinite, {self.most_skipped} are allowed. {_ADVICE}"
            )

    def _message(self, batch: int) -> str:
        steps = self.params.get("steps") or 0
        contents = ""
        if self.describe is not None:
            contents = self.describe(self._epoch * steps + batch)
        return (
            f"The gradient is NaN or infinite since epoch {self._epoch + 1}, "
            f"batch {batch + 1} of {steps}. {contents}{_ADVICE}"
        )


_ADVICE = (
    "The last snapshot is from before that. Lower the learning rate or the "
    "clip norm, look at the text of that batch, or leave such steps out "
    "(training.on_nonfinite=skip)."
)


def check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    """Raise where weights are not finite.

    Args:
        arrays: Those of a snapshot, by `model/…`, `optimizer/…`.

    Raises:
        NonFiniteError: With their names.
    """
    bad = [
        name
        for name, array in arrays.items()
        if not name.startswith("metrics/")
        and array.dtype.kind in "fV"
        and not np.isfinite(array.astype("float32")).all()
    ]
    if bad:
        raise NonFiniteError(
            f"These weights are NaN or infinite: {', '.join(bad[:5])}"
            f"{' and others' if len(bad) > 5 else ''}. {_ADVICE}"
        )


def is_transient(name: str) -> bool:
    """Whether a variable belongs to a process and not to the run."""
    return NONFINITE in name


def _number(variable: keras.Variable) -> np.ndarray:
    return keras.ops.convert_to_numpy(variable)
