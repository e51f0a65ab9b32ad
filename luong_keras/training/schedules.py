"""Learning-rate schedules that halve the rate by the epoch."""

import functools
import math
from collections.abc import Callable
from typing import Any

import keras

from luong_keras.config.checks import (
    check_fraction,
    check_integers,
    check_positive_or_none,
)


def halved_rate(
    initial_rate: float,
    step: int,
    steps_per_epoch: int,
    first_halved_epoch: int = 6,
    halvings_per_epoch: int = 1,
    factor: float = 0.5,
) -> float:
    """Compute the learning rate of a step by the rule of the paper.

    Epochs are counted from 1. Before `first_halved_epoch` the rate is the
    initial one. That epoch starts with the first halving; from then on each
    epoch has `halvings_per_epoch` halvings, evenly spaced.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        steps_per_epoch: The number of batches per epoch.
        first_halved_epoch: The first epoch with a smaller rate; 6 in the
            paper (section 4.1), 9 for its models with dropout.
        halvings_per_epoch: The number of times that the rate falls per epoch.
        factor: The factor that multiplies the rate each time.

    Returns:
        The rate.

    Example:
        >>> [halved_rate(1.0, 100 * epoch, 100) for epoch in (0, 4, 5, 6)]
        [1.0, 1.0, 0.5, 0.25]
    """
    late_steps = step - (first_halved_epoch - 1) * steps_per_epoch
    if late_steps < 0:
        return initial_rate
    return initial_rate * factor ** (
        1 + late_steps * halvings_per_epoch // steps_per_epoch
    )


def rate_halved_after_epoch(
    initial_rate: float,
    step: int,
    steps_per_epoch: int,
    finetune_epoch: int = 5,
    epoch_fraction: float = 1.0,
    factor: float = 0.5,
) -> float:
    """Compute the learning rate by the rule of the authors' program.

    In the epochs after `finetune_epoch`, the rate falls after each update whose
    number (over all epochs, from 1) is a multiple of the number of updates in
    `epoch_fraction` epochs. With whole epochs, epoch `finetune_epoch` + 2 is
    therefore the first with a smaller rate, one epoch later than in the paper's
    text and in `rate_halved_by_iteration`.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        steps_per_epoch: The number of batches per epoch.
        finetune_epoch: The last epoch without a halving, counted from 1.
        epoch_fraction: The number of epochs between halvings, such as 0.5.
        factor: The factor that multiplies the rate each time.

    Returns:
        The rate.

    Example:
        >>> rate = rate_halved_after_epoch
        >>> [rate(1.0, 100 * epoch, 100) for epoch in (4, 5, 6, 7)]
        [1.0, 1.0, 0.5, 0.25]
    """
    period = max(math.floor(epoch_fraction * steps_per_epoch), 1)
    halvings = step // period - finetune_epoch * steps_per_epoch // period
    return initial_rate * factor ** max(halvings, 0)


def rate_halved_by_iteration(
    initial_rate: float,
    step: int,
    iterations_per_epoch: float,
    finetune_epoch: int = 5,
    epoch_fraction: float = 1.0,
    factor: float = 0.5,
) -> float:
    """Compute the learning rate by the program's rule for epochs of updates.

    An epoch is a given number of updates, whatever the data. From the end of
    epoch `finetune_epoch` on, the rate falls after each update whose number
    (from 1) is a multiple of the number of updates in `epoch_fraction` epochs:
    epoch `finetune_epoch` + 1 (with 0, epoch 2) is the first that begins with a
    smaller rate, as in section 4.1.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        iterations_per_epoch: The number of updates that count as an epoch.
        finetune_epoch: The epoch that ends with the first halving.
        epoch_fraction: The number of epochs between halvings, such as 0.5.
        factor: The factor that multiplies the rate each time.

    Returns:
        The rate.

    Example:
        >>> rate = rate_halved_by_iteration
        >>> [rate(1.0, 100 * epoch, 100) for epoch in (4, 5, 6, 7)]
        [1.0, 0.5, 0.25, 0.125]
    """
    period = max(math.floor(iterations_per_epoch * epoch_fraction), 1)
    first = max(math.ceil(finetune_epoch * iterations_per_epoch), 1)
    halvings = step // period - (first - 1) // period
    return initial_rate * factor ** max(halvings, 0)


class LearningRateHalving(keras.callbacks.Callback):
    """Callback that sets the learning rate before each batch.

    `LearningRateHalving(...)` follows `halved_rate`, the paper's text;
    `LearningRateHalving.after_epoch(...)` and `.by_iteration(...)` follow the
    two rules of the authors' program. The rate depends only on the epoch and
    the batch, so a resumed run has the rates of an uninterrupted one.

    Args:
        first_halved_epoch: See `halved_rate`.
        halvings_per_epoch: See `halved_rate`.
        initial_rate: The rate of the first epoch; `None` takes the optimizer's
            rate at the beginning of epoch 0. A `fit` with an `initial_epoch`
            continues the previous run of this callback.
        steps_per_epoch: The number of batches per epoch; `None` takes the
            number that `fit` passes to callbacks.
        factor: See `halved_rate`.

    Raises:
        ValueError: If an argument is out of range; when training begins, for
            an optimizer whose rate is a schedule, or if `fit` begins in a
            later epoch and the initial rate is unknown.

    Example:
        >>> schedule = LearningRateHalving(first_halved_epoch=9)
        >>> schedule.get_state()
        {'initial_rate': None}
    """

    def __init__(
        self,
        first_halved_epoch: int = 6,
        halvings_per_epoch: int = 1,
        initial_rate: float | None = None,
        steps_per_epoch: int | None = None,
        factor: float = 0.5,
    ) -> None:
        super().__init__()
        check_integers(
            first_halved_epoch=first_halved_epoch,
            halvings_per_epoch=halvings_per_epoch,
        )
        check_integers(optional=True, steps_per_epoch=steps_per_epoch)
        check_positive_or_none(initial_rate=initial_rate)
        check_fraction(factor=factor)
        self.initial_rate = initial_rate
        self.steps_per_epoch = steps_per_epoch
        self._rule: Callable[[float, int, int], float] = functools.partial(
            halved_rate,
            first_halved_epoch=first_halved_epoch,
            halvings_per_epoch=halvings_per_epoch,
            factor=factor,
        )
        # `_first_rate` is the rate in use: given, restored, or read from the
        # optimizer in epoch 0, unless that epoch is resumed (`_restored`).
        self._first_rate, self._restored = initial_rate, False
        self._epoch = self._steps = 0
        self._rate: float | None = None

    @classmethod
    def after_epoch(
        cls,
        finetune_epoch: int = 5,
        epoch_fraction: float = 1.0,
        initial_rate: float | None = None,
        steps_per_epoch: int | None = None,
        factor: float = 0.5,
    ) -> "LearningRateHalving":
        """Build a callback with the rule `rate_halved_after_epoch`.

        Args:
            finetune_epoch: As in the rule.
            epoch_fraction: As in the rule.
            initial_rate: As in the constructor.
            steps_per_epoch: As in the constructor.
            factor: As in the rule.

        Returns:
            The callback.

        Raises:
            ValueError: If an argument is out of range.
        """
        schedule = cls(
            initial_rate=initial_rate,
            steps_per_epoch=steps_per_epoch,
            factor=factor,
        )
        check_integers(minimum=0, finetune_epoch=finetune_epoch)
        check_positive_or_none(epoch_fraction=epoch_fraction)
        schedule._rule = functools.partial(
            rate_halved_after_epoch,
            finetune_epoch=finetune_epoch,
            epoch_fraction=epoch_fraction,
            factor=factor,
        )
        return schedule

    @classmethod
    def by_iteration(
        cls,
        iterations_per_epoch: float,
        finetune_epoch: int = 5,
        epoch_fraction: float = 1.0,
        initial_rate: float | None = None,
        steps_per_epoch: int | None = None,
        factor: float = 0.5,
    ) -> "LearningRateHalving":
        """Build a callback with the rule `rate_halved_by_iteration`.

        Args:
            iterations_per_epoch: As in the rule.
            finetune_epoch: As in the rule.
            epoch_fraction: As in the rule.
            initial_rate: As in the constructor.
            steps_per_epoch: As in the constructor; only numbers the batches.
            factor: As in the rule.

        Returns:
            The callback.

        Raises:
            ValueError: If an argument is out of range.
        """
        schedule = cls(
            initial_rate=initial_rate,
            steps_per_epoch=steps_per_epoch,
            factor=factor,
        )
        check_integers(minimum=0, finetune_epoch=finetune_epoch)
        check_positive_or_none(
            iterations_per_epoch=iterations_per_epoch,
            epoch_fraction=epoch_fraction,
        )
        schedule._rule = lambda rate, step, steps: rate_halved_by_iteration(
            rate,
            step,
            iterations_per_epoch,
            finetune_epoch,
            epoch_fraction,
            factor,
        )
        return schedule

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Read the length of an epoch, unless one was given."""
        refuse_schedule(self.model.optimizer, self)
        self._steps = self.steps_per_epoch or self.params["steps"]
        if not self._steps:
            raise ValueError(
                "The length of an epoch is not known before its end. "
                f"Received: steps_per_epoch={self._steps}. Give "
                "`steps_per_epoch` to the callback or to `fit`."
            )
        self._rate = None

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Remember the epoch; in epoch 0 read the optimizer's rate."""
        self._epoch = epoch
        if self._rate is not None or self.initial_rate is not None:
            return
        if epoch == 0 and not self._restored:
            self._first_rate = current_rate(self.model.optimizer)
        if self._first_rate is None:
            raise ValueError(
                "The rate of the first epoch is not known: by now the "
                "optimizer may have a smaller one. Received: initial_epoch="
                f"{epoch}, initial_rate=None. Give `initial_rate=`, or "
                "train by `luong_keras.fit`, whose snapshots have it."
            )
        self._restored = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Set the rate of this batch."""
        assert self._first_rate is not None  # since `on_epoch_begin`
        # Keras calls this once for the steps of one execution.
        end = min(batch + self.model.steps_per_execution, self._steps)
        first = self._epoch * self._steps
        rate, *others = (
            self._rule(self._first_rate, first + step, self._steps)
            for step in range(batch, max(end, batch + 1))
        )
        if others and others[-1] != rate:
            raise ValueError(
                "Expected: one rate for all batches of an execution. Received: "
                f"steps_per_execution={self.model.steps_per_execution}, and "
                f"the rate falls from {rate:g} within batches {batch} to "
                f"{end - 1} of an epoch. Compile with a number that divides "
                "the batches between two halvings, such as 1."
            )
        # Only if it changes, because `self.model` copies the state on JAX.
        if rate != self._rate:
            self.model.optimizer.learning_rate = rate
            self._rate = rate

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Add the rate to the logs."""
        if logs is not None:
            logs["learning_rate"] = self._rate

    def get_state(self) -> dict[str, Any]:
        """Return the initial rate, which the optimizer forgets."""
        return {"initial_rate": self._first_rate}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the initial rate of the run, unless one was given."""
        if self.initial_rate is None:
            self._first_rate = state["initial_rate"]
            self._restored = self._first_rate is not None


def inner_optimizer(
    optimizer: keras.optimizers.Optimizer,
) -> keras.optimizers.Optimizer:
    """Return what a `LossScaleOptimizer` wraps, or the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def current_rate(optimizer: keras.optimizers.Optimizer) -> float:
    """Read the learning rate, which waits for the device."""
    return float(keras.ops.convert_to_numpy(optimizer.learning_rate))


def refuse_schedule(
    optimizer: keras.optimizers.Optimizer, callback: keras.callbacks.Callback
) -> None:
    """Raise ValueError if the optimizer's rate is a schedule."""
    inner = inner_optimizer(optimizer)
    rate = inner.get_config()["learning_rate"]
    if isinstance(rate, dict):
        name = type(callback).__name__
        raise ValueError(
            f"`{name}` sets the learning rate, which must be a number. "
            f"Received: a {rate['class_name']} in {type(inner).__name__}. "
            "Give the optimizer its initial rate, such as learning_rate=1.0, "
            "or leave the callback out."
        )
