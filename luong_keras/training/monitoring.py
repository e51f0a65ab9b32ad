"""Comparison of epochs by a monitored value."""

import math
from collections.abc import Mapping
from typing import Any

import keras

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


def result(logs: Mapping[str, Any] | None, monitor: str) -> tuple[float, float]:
    """Find the monitored value and the validation loss of an epoch.

    Args:
        logs: Those of `on_epoch_end`.
        monitor: The key of the value.

    Returns:
        Both; a loss that is not there, or NaN, is infinite.

    Raises:
        ValueError: If the value is not there.

    Example:
        >>> result({"val_bleu": 30, "val_loss": 2}, "val_bleu")
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
        value, loss = result(logs, self.monitor)
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
