"""Callbacks that monitor the numbers of a run and compare its epochs."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from luong_keras.config.checks import (
    check_choice,
    check_fraction,
    check_integers,
    check_not_negative,
)
from luong_keras.ops.devices import check_one_replica
from luong_keras.training.schedules import (
    current_rate,
    inner_optimizer,
    refuse_schedule,
)

#: Logs of which the first decides between epochs of equal value.
LOSSES = ("val_word_perplexity", "val_loss")


class Stateful(keras.callbacks.Callback):
    """Base of callbacks that save some attributes with the run.

    Attributes:
        saved: The names of these attributes, with JSON-compatible values.

    Raises:
        ValueError: If the model has several replicas of `tf.distribute`.
    """

    saved: tuple[str, ...] = ()

    def set_model(self, model: keras.Model) -> None:
        """Set the model, which may have only one replica."""
        check_one_replica(model)
        super().set_model(model)

    def get_state(self) -> dict[str, Any]:
        """Return the state for a snapshot of the run."""
        return {name: getattr(self, name) for name in self.saved}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a saved state; attributes that it lacks do not change."""
        for name in self.saved:
            setattr(self, name, state.get(name, getattr(self, name)))


class BestEpoch(Stateful):
    """Base of callbacks that compare each epoch with the best one so far.

    Args:
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Attributes:
        best: The value of the best epoch, `None` before the first.
        loss: The validation perplexity, or loss, of the best epoch.
        waited: The number of epochs since the best one.

    Raises:
        ValueError: If `mode` is unknown.
    """

    saved: tuple[str, ...] = ("best", "loss", "waited")

    def __init__(self, monitor: str, mode: str) -> None:
        super().__init__()
        check_choice(("max", "min"), mode=mode)
        self.monitor = monitor
        self.mode = mode
        self.restart()

    def restart(self) -> None:
        """Forget all epochs."""
        self.best: float | None = None
        self.loss = math.inf
        self.waited = 0

    def improved(
        self, logs: Mapping[str, Any] | None, min_delta: float = 0.0
    ) -> bool:
        """Compare an epoch with the best one, and remember the better one.

        Args:
            logs: The logs of `on_epoch_end`.
            min_delta: A better value must be better by more than this.

        Returns:
            Whether the epoch is the best so far. NaN never is. If values are
            equal, the lower perplexity or loss is better.

        Raises:
            ValueError: If the logs lack the value.
        """
        if not logs or self.monitor not in logs:
            raise ValueError(
                f"The logs of the epoch must hold {self.monitor!r}. Received: "
                f"{sorted(logs or {})}. Put the callback that adds it before "
                "this one, validate after each epoch (`validation_freq=1`), or "
                "monitor another value."
            )
        value = float(logs[self.monitor])
        losses = [float(logs[name]) for name in LOSSES if name in logs]
        loss = losses[0] if losses and not math.isnan(losses[0]) else math.inf
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
    """Callback for early stopping whose state is saved with the run.

    Of epochs with the same value, that with the lower `val_word_perplexity`, or
    without it `val_loss`, is better. Unlike in Keras' `EarlyStopping` the run
    saves its best value and the epochs waited. `luong_keras.training.fit.fit`
    does not train a run that has ended, unless the patience is larger now: it
    then continues as if the run had begun with that patience.

    Args:
        patience: The number of epochs in a row without a better one that ends
            the run; `None` never ends it.
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Raises:
        ValueError: If the patience is below 1, `mode` is unknown, or the logs
            of an epoch lack the value.

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
        check_integers(optional=True, patience=patience)
        self.patience = patience

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Forget the epochs of an earlier run."""
        if epoch == 0:
            self.restart()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Compare the epochs, and end the run after `patience` epochs."""
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
        """True once the callback has ended the run."""
        return self.patience is not None and self.waited >= self.patience


class ReduceOnPlateau(BestEpoch):
    """Callback that lowers the learning rate when a value stops improving.

    Unlike with Keras' `ReduceLROnPlateau`, the run saves its best value and the
    epochs waited. Equal values are compared as in `StopOnPlateau`. It skips
    epochs without validation, and warns. Do not use `LearningRateHalving` too.

    Args:
        monitor: The key of the value in the logs of an epoch.
        mode: `"min"` or `"max"`, the better direction.
        factor: The factor that multiplies the rate.
        patience: The epochs without improvement before the one that lowers it.
        min_delta: A better value must be better by more than this.
        min_rate: The lowest rate that the callback sets.

    Raises:
        ValueError: If `mode` is unknown, `factor` is not a fraction, another
            number is negative, or the logs of an epoch lack the value.

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
        check_fraction(factor=factor)
        check_integers(minimum=0, patience=patience)
        check_not_negative(min_delta=min_delta, min_rate=min_rate)
        self.factor = factor
        self.patience = patience
        self.min_delta = min_delta
        self.min_rate = min_rate

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Check that the learning rate can be set."""
        refuse_schedule(self.model.optimizer, self)

    on_epoch_begin = StopOnPlateau.on_epoch_begin

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Compare the epochs, and lower the rate after the patience."""
        if self.monitor.startswith("val_") and not any(
            name.startswith("val_") for name in logs or ()
        ):
            warnings.warn(
                f"ReduceOnPlateau skips an epoch without {self.monitor!r}: "
                "it had no validation.",
                stacklevel=2,
            )
            return
        self.improved(logs, self.min_delta)
        assert logs is not None  # since `improved`
        optimizer = self.model.optimizer
        rate = current_rate(optimizer)
        logs["learning_rate"] = rate
        if self.waited > self.patience and rate > self.min_rate:
            optimizer.learning_rate = max(rate * self.factor, self.min_rate)
            self.waited = 0


class NonFiniteError(ArithmeticError):
    """Error for a NaN or an infinity in the gradient or weights of a run."""


class StopOnNonFinite(Stateful):
    """Callback that stops a run at a NaN or an infinity.

    The optimizer counts such steps (`make_optimizer(on_nonfinite=...)`). This
    callback reads the counter every few batches, because reading waits for the
    device. Put it before the callback that saves a snapshot without them.

    Under float16 an overflow of the gradient is not a divergence: the optimizer
    that scales the loss skips the step and halves the scale. The run stops only
    if the scale falls below 1.

    Args:
        every_steps: The number of batches between two checks.
        describe: A function from a global step to a description of its batch,
            for the message.

    Raises:
        NonFiniteError: While training, with the epoch and batch if known.
        ValueError: If `every_steps` is below 1; when training begins, if the
            optimizer does not count such steps.

    Example:
        >>> StopOnNonFinite(every_steps=10).every_steps
        10
    """

    def __init__(
        self,
        every_steps: int = 50,
        describe: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__()
        check_integers(every_steps=every_steps)
        self.every_steps = every_steps
        self.describe = describe or (lambda step: "")

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Reset the counters, also after an earlier call of `fit`."""
        optimizer = self.model.optimizer
        inner = inner_optimizer(optimizer)
        counts = getattr(inner, "on_nonfinite", None) is not None
        if not counts and not hasattr(optimizer, "dynamic_scale"):
            raise ValueError(
                "`StopOnNonFinite` reads the counter of an optimizer. "
                "Expected: make_optimizer(on_nonfinite='note'), ClippedSGD or "
                f"ClippedAdam with it. Received: {type(inner).__name__}, which "
                "does not count."
            )
        if getattr(inner, "nonfinite_steps", None) is not None:
            inner.nonfinite_steps.assign(0)
            inner.first_nonfinite.assign(-1)
        self._epoch, self._batch = 0, -1

    def get_state(self) -> dict[str, Any]:
        """Check before a snapshot; there is no state."""
        if hasattr(self, "_epoch"):  # Training has begun.
            self._check()
        return {}

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remember the epoch."""
        self._epoch, self._batch = epoch, -1

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Check the counters every `every_steps` batches."""
        self._batch = batch
        # A step may have several batches.
        if (batch + 1) % self.every_steps < self.model.steps_per_execution:
            self._check()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Check the counters."""
        self._check()

    def _check(self) -> None:
        """Raise an error if a step failed."""
        optimizer = self.model.optimizer
        inner = inner_optimizer(optimizer)
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is not None and float(ops.convert_to_numpy(scale)) < 1:
            raise NonFiniteError(
                f"Epoch {self._epoch + 1}: the gradient overflows float16 "
                "however small the loss is scaled, so the run has diverged. "
                f"{_ADVICE}"
            )
        number = getattr(inner, "nonfinite_steps", None)
        if number is None or not int(ops.convert_to_numpy(number)):
            return
        first = int(ops.convert_to_numpy(inner.first_nonfinite))
        # Each batch adds one to `iterations`.
        steps_since = int(ops.convert_to_numpy(inner.iterations)) - 1 - first
        batch = self._batch - steps_since
        steps = self.params.get("steps")  # None if unknown
        text = self.describe(self._epoch * steps + batch) if steps else ""
        raise NonFiniteError(
            "The gradient has been NaN or infinite since epoch "
            f"{self._epoch + 1}, batch {batch + 1}"
            f"{f' of {steps}' if steps else ''}. {text}{_ADVICE}"
        )


_ADVICE = (
    "The last snapshot is from before that. Lower the learning rate or the "
    "clip norm, or check the text of that batch."
)


def check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    """Check that the weights of a snapshot are finite.

    Args:
        arrays: The arrays of the snapshot, by `model/…`, `optimizer/…`.

    Raises:
        NonFiniteError: With the names of weights that are not finite.
    """
    nonfinite = [
        name
        for name, array in arrays.items()
        if not name.startswith("metrics/")
        and array.dtype.kind in "fV"
        and not np.isfinite(array.astype("float32")).all()
    ]
    if nonfinite:
        raise NonFiniteError(
            f"These weights are NaN or infinite: {', '.join(nonfinite[:5])}"
            f"{' and others' * (len(nonfinite) > 5)}. {_ADVICE}"
        )
