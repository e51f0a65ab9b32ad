"""Callbacks that watch the numbers of a run, and compare its epochs."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from luong_keras.tables import counted
from luong_keras.training.schedules import current_rate, refuse_schedule

#: Decides between epochs of equal value; lower is better.
LOSS = "val_loss"


def check_mode(mode: str) -> None:
    """Raise unless it is the name of a direction.

    Args:
        mode: What a callback was given.

    Raises:
        ValueError: If it is neither `"max"` nor `"min"`.
    """
    if mode not in ("max", "min"):
        raise ValueError(
            "`mode` must be 'max' or 'min', the better direction of "
            f"`monitor`. Received: mode={mode!r}."
        )


def monitored_value(
    logs: Mapping[str, Any] | None, monitor: str
) -> tuple[float, float]:
    """Find the monitored value and the validation loss of an epoch.

    Args:
        logs: Those of `on_epoch_end`.
        monitor: The key of the value.

    Returns:
        Both; a loss that is not there, or NaN, is infinite.

    Raises:
        ValueError: If the value is not there.

    Example:
        >>> monitored_value({"val_bleu": 30, "val_loss": 2}, "val_bleu")
        (30.0, 2.0)
    """
    if not logs or monitor not in logs:
        raise ValueError(
            f"The logs of the epoch must hold {monitor!r}. Received: "
            f"{sorted(logs or {})}. Put the callback that adds it before "
            "this one, or monitor another value."
        )
    loss = float(logs.get(LOSS, math.inf))
    return float(logs[monitor]), math.inf if math.isnan(loss) else loss


class Stateful(keras.callbacks.Callback):
    """Base of the callbacks of which some attributes belong to the run.

    Attributes:
        saved: Their names. JSON can hold their values.
    """

    saved: tuple[str, ...] = ()

    def get_state(self) -> dict[str, Any]:
        """Return what a snapshot of the run holds."""
        return {name: getattr(self, name) for name in self.saved}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the state of an earlier run; what it lacks stays."""
        for name in self.saved:
            setattr(self, name, state.get(name, getattr(self, name)))


class BestEpoch(Stateful):
    """Base of the callbacks that compare an epoch with the best before it.

    Args:
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Attributes:
        best: The value of the best epoch, `None` where there is none.
        loss: Its validation loss.
        waited: The epochs since then.

    Raises:
        ValueError: If `mode` is unknown.
    """

    saved: tuple[str, ...] = ("best", "loss", "waited")

    def __init__(self, monitor: str, mode: str) -> None:
        super().__init__()
        check_mode(mode)
        self.monitor = monitor
        self.mode = mode
        self.best: float | None = None
        self.loss = math.inf
        self.waited = 0

    def improved(
        self, logs: Mapping[str, Any] | None, min_delta: float = 0.0
    ) -> bool:
        """Compare an epoch with the best one, and keep the better.

        Args:
            logs: Those of `on_epoch_end`.
            min_delta: The change of the value that counts as better.

        Returns:
            Whether the epoch is the best so far, which NaN never is. Of equal
            values the one of less loss is better.

        Raises:
            ValueError: If the logs lack the value.
        """
        value, loss = monitored_value(logs, self.monitor)
        if self.best is None:
            better = not math.isnan(value)
        elif value == self.best:
            better = loss < self.loss
        else:
            gain = value - self.best
            better = (gain if self.mode == "max" else -gain) > min_delta
        self.waited = 0 if better else self.waited + 1
        if better:
            self.best, self.loss = value, loss
        return better


class StopOnPlateau(BestEpoch):
    """End the run after some epochs in a row that were not the best.

    Of epochs with the same value the one with less `val_loss` is the better.
    Unlike `keras.callbacks.EarlyStopping` it has its best value and what it
    has waited saved with the run: `luong_keras.training.fit.fit` trains no
    more where it has ended, and continues where the patience is larger now, as
    a run that had it from the beginning.

    Args:
        patience: The number of epochs; `None` counts them and never ends.
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Raises:
        ValueError: If the patience is below 1, `mode` is unknown, or if an
            epoch's logs lack the value.

    Example:
        >>> StopOnPlateau(patience=3).ended
        False
    """

    def __init__(
        self,
        patience: int | None = None,
        monitor: str = "val_bleu",
        mode: str = "max",
    ) -> None:
        super().__init__(monitor, mode)
        if patience is not None and patience < 1:
            raise ValueError(
                "`patience` is a number of epochs, at least 1. Received: "
                f"patience={patience}. None never ends the run."
            )
        self.patience = patience

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Compare, and end the run when the patience is over."""
        self.improved(logs)
        if self.ended:
            self.model.stop_training = True
            print(
                f"\nThe best {self.monitor}, {self.best}, is {self.waited} "
                f"epochs old: the training ends after epoch {epoch + 1}.",
                flush=True,
            )

    @property
    def ended(self) -> bool:
        """Whether the run is at its end."""
        return self.patience is not None and self.waited >= self.patience


class ReduceOnPlateau(BestEpoch):
    """Lower the learning rate when a monitored value stops improving.

    Of epochs with the same value the one with less `val_loss` is the better.
    Unlike the Keras callback of this kind it has its best result and its
    patience saved with the run. Do not combine it with `LearningRateHalving`.

    Args:
        monitor: The key of the value in the logs of an epoch.
        mode: `"min"` or `"max"`, the better direction.
        factor: What the rate is multiplied by.
        patience: The epochs without improvement that are let pass.
        min_delta: The change that counts as improvement.
        min_rate: The rate is never set below this.

    Raises:
        ValueError: If `mode` is unknown.

    Example:
        >>> ReduceOnPlateau("val_bleu", mode="max").factor
        0.5
    """

    def __init__(
        self,
        monitor: str = "val_perplexity",
        mode: str = "min",
        factor: float = 0.5,
        patience: int = 0,
        min_delta: float = 0.0,
        min_rate: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode)
        self.factor = factor
        self.patience = patience
        self.min_delta = min_delta
        self.min_rate = min_rate

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Refuse a rate that cannot be set."""
        refuse_schedule(self.model.optimizer, self)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Compare, and lower the rate when the patience is over."""
        if not logs or self.monitor not in logs:
            return
        optimizer = self.model.optimizer
        rate = current_rate(optimizer)
        logs["learning_rate"] = rate
        self.improved(logs, self.min_delta)
        if self.waited > self.patience:
            optimizer.learning_rate = max(rate * self.factor, self.min_rate)
            self.waited = 0


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
        max_skipped: The steps that may be skipped in a run before it stops;
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
        max_skipped: int = 100,
        describe: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__()
        self.every_steps = every_steps
        self.max_skipped = max_skipped
        self.describe = describe
        self.skipped = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Count from zero, also after an earlier call of `fit`."""
        optimizer = self.model.optimizer
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        if getattr(inner, "nonfinite_steps", None) is not None:
            inner.nonfinite_steps.assign(0)
            inner.first_nonfinite.assign(-1)
        self._seen, self._epoch, self._batch = 0, 0, -1

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
        if self.skipped > self.max_skipped:
            raise NonFiniteError(
                f"{counted(self.skipped, 'step was', 'steps were')} skipped "
                "for a gradient that is NaN or infinite, "
                f"{self.max_skipped} are allowed. {_ADVICE}"
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
    "clip norm, look at the text of that batch, or leave some such "
    "steps out (training.max_skipped=100)."
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


def _number(variable: keras.Variable) -> np.ndarray:
    return keras.ops.convert_to_numpy(variable)
