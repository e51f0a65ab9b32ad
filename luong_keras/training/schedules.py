"""Learning rates halved by the epoch."""

import functools
import math
from collections.abc import Callable
from typing import Any

import keras


def halved_rate(
    initial_rate: float,
    step: int,
    steps_per_epoch: int,
    first_halved_epoch: int = 6,
    halvings_per_epoch: int = 1,
    factor: float = 0.5,
) -> float:
    """Compute the learning rate of a step.

    Epochs are counted from 1. Up to `first_halved_epoch` the rate is the
    initial one; that epoch starts with the first halving and every epoch from
    there on brings `halvings_per_epoch`, evenly spaced.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        steps_per_epoch: The batches of an epoch.
        first_halved_epoch: The first epoch with a smaller rate; 6 in the
            paper (section 4.1), 9 for its models with dropout.
        halvings_per_epoch: How often the rate falls in an epoch.
        factor: What the rate is multiplied by each time.

    Returns:
        The rate.

    Example:
        >>> [halved_rate(1.0, 100 * epoch, 100) for epoch in (0, 4, 5, 6)]
        [1.0, 1.0, 0.5, 0.25]
    """
    late = step - (first_halved_epoch - 1) * steps_per_epoch
    if late < 0:
        return initial_rate
    return initial_rate * factor ** (
        1 + late * halvings_per_epoch // steps_per_epoch
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

    In the epochs after `finetune_epoch`, the rate falls after every update
    whose number (over all epochs, from 1) is a multiple of the updates of
    `epoch_fraction` epochs. So with whole epochs the first smaller rate is
    that of epoch `finetune_epoch` + 2, one epoch later than in the paper's
    text and in `rate_halved_by_iteration`.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        steps_per_epoch: The batches of an epoch.
        finetune_epoch: The last epoch without a halving, counted from 1.
        epoch_fraction: The epochs between halvings, such as 0.5.
        factor: What the rate is multiplied by each time.

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
    """Compute the learning rate by the program's rule for given epochs.

    An epoch is a given number of updates, whatever the data. From the end of
    epoch `finetune_epoch` on, the rate falls after every update whose number
    (from 1) is a multiple of the updates of `epoch_fraction` epochs: epoch
    `finetune_epoch` + 1 is the first with a smaller rate, as in section 4.1.

    Args:
        initial_rate: The rate of the first epoch.
        step: The number of batches before this one.
        iterations_per_epoch: The updates that count as an epoch.
        finetune_epoch: The epoch whose end brings the first halving.
        epoch_fraction: The epochs between halvings, such as 0.5.
        factor: What the rate is multiplied by each time.

    Returns:
        The rate.

    Example:
        >>> rate = rate_halved_by_iteration
        >>> [rate(1.0, 100 * epoch, 100) for epoch in (4, 5, 6, 7)]
        [1.0, 0.5, 0.25, 0.125]
    """
    period = max(math.floor(iterations_per_epoch * epoch_fraction), 1)
    first = math.ceil(finetune_epoch * iterations_per_epoch)
    halvings = step // period - (first - 1) // period
    return initial_rate * factor ** max(halvings, 0)


class LearningRateHalving(keras.callbacks.Callback):
    """Set the learning rate before each batch, by one of three rules.

    `LearningRateHalving(...)` is `halved_rate`, the paper's text;
    `LearningRateHalving.after_epoch(...)` and `.by_iteration(...)` are the
    two rules of the authors' program. The rate depends on the epoch and the
    batch alone, so a resumed run has the rates of an uninterrupted one.

    Args:
        first_halved_epoch: See `halved_rate`.
        halvings_per_epoch: See `halved_rate`.
        initial_rate: The rate of the first epoch; `None` takes the one that
            the optimizer has when epoch 0 begins. A `fit` with an
            `initial_epoch` continues the former run of this callback.
        steps_per_epoch: The batches of an epoch; `None` takes what `fit`
            tells its callbacks.
        factor: See `halved_rate`.

    Raises:
        ValueError: If an argument is out of range; when the training begins,
            for an optimizer whose rate is a schedule, and if `fit` begins in
            a later epoch and the initial rate is not known.

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
        if first_halved_epoch < 1 or halvings_per_epoch < 1:
            raise ValueError(
                "`first_halved_epoch` (counted from 1) and "
                "`halvings_per_epoch` must be at least 1. Received: "
                f"first_halved_epoch={first_halved_epoch}, "
                f"halvings_per_epoch={halvings_per_epoch}. For a constant "
                "rate, leave the callback out."
            )
        self.initial_rate = initial_rate
        self.steps_per_epoch = steps_per_epoch
        self._rule: Callable[[float, int, int], float] = functools.partial(
            halved_rate,
            first_halved_epoch=first_halved_epoch,
            halvings_per_epoch=halvings_per_epoch,
            factor=factor,
        )
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
        """The rule `rate_halved_after_epoch`; see there.

        Args:
            finetune_epoch: See there.
            epoch_fraction: See there.
            initial_rate: As in the constructor.
            steps_per_epoch: As in the constructor.
            factor: See there.

        Returns:
            The callback.
        """
        schedule = cls(
            initial_rate=initial_rate, steps_per_epoch=steps_per_epoch
        )
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
        """The rule `rate_halved_by_iteration`; see there.

        Args:
            iterations_per_epoch: See there.
            finetune_epoch: See there.
            epoch_fraction: See there.
            initial_rate: As in the constructor.
            steps_per_epoch: As in the constructor; it numbers the batches.
            factor: See there.

        Returns:
            The callback.
        """
        schedule = cls(
            initial_rate=initial_rate, steps_per_epoch=steps_per_epoch
        )

        def rule(initial_rate: float, step: int, steps_per_epoch: int):
            return rate_halved_by_iteration(
                initial_rate,
                step,
                iterations_per_epoch,
                finetune_epoch,
                epoch_fraction,
                factor,
            )

        schedule._rule = rule
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
        """Remember the epoch; in epoch 0 read the rate that was not given."""
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
        rate = self._rule(
            self._first_rate, self._epoch * self._steps + batch, self._steps
        )
        # `self.model` copies the state back on JAX, so only when it changes.
        if rate != self._rate:
            self.model.optimizer.learning_rate = rate
            self._rate = rate

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Report the rate."""
        if logs is not None:
            logs["learning_rate"] = self._rate

    def get_state(self) -> dict[str, Any]:
        """Return the initial rate, which the optimizer forgets."""
        return {"initial_rate": self._first_rate}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the initial rate of the run, unless one was given."""
        if self.initial_rate is None:
            self._first_rate = state["initial_rate"]
            self._restored = self._first_rate is not None


def current_rate(optimizer: keras.optimizers.Optimizer) -> float:
    """Read the learning rate; it waits for the device."""
    # `float` refuses the variable of several replicas.
    return float(keras.ops.convert_to_numpy(optimizer.learning_rate))


def refuse_schedule(
    optimizer: keras.optimizers.Optimizer, callback: keras.callbacks.Callback
) -> None:
    """Raise ValueError where a schedule has the rate that a callback sets."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    rate = inner.get_config()["learning_rate"]
    if isinstance(rate, dict):
        name = type(callback).__name__
        raise ValueError(
            f"`{name}` sets the learning rate, which must be a number. "
            f"Received: a {rate['class_name']} in {type(inner).__name__}. "
            "Give the optimizer its initial rate, such as learning_rate=1.0, "
            "or leave the callback out."
        )
