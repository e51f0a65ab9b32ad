"""Comparison of epochs by a monitored value."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

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


def monitored(logs: Mapping[str, Any] | None, monitor: str) -> float:
    """Find a value in the logs of an epoch.

    Args:
        logs: Those of `on_epoch_end`.
        monitor: The key.

    Returns:
        The value.

    Raises:
        ValueError: If it is not there.

    Example:
        >>> monitored({"val_bleu": 30}, "val_bleu")
        30.0
    """
    if not logs or monitor not in logs:
        raise ValueError(
            f"The logs of the epoch must hold {monitor!r}. Received: "
            f"{sorted(logs or {})}. Put the callback that adds it before "
            "this one, or monitor another value."
        )
    return float(logs[monitor])


class Result(NamedTuple):
    """Monitored value and validation loss of an epoch.

    Attributes:
        value: The monitored one; a NaN is never better.
        loss: Of equal values the one of less loss is better; infinity where
            the logs have none.
    """

    value: float
    loss: float = math.inf

    @classmethod
    def of(cls, logs: Mapping[str, Any] | None, monitor: str) -> "Result":
        """Read the result of an epoch.

        Args:
            logs: Those of `on_epoch_end`.
            monitor: The key of the value.

        Returns:
            The result.

        Raises:
            ValueError: If the value is not there.
        """
        value = monitored(logs, monitor)
        loss = (logs or {}).get(LOSS)
        if loss is None or math.isnan(float(loss)):
            return cls(value)
        return cls(value, float(loss))

    def is_better(
        self, best: "Result | None", mode: str, min_delta: float = 0.0
    ) -> bool:
        """Whether the epoch is the best so far.

        Args:
            best: That of the best epoch before, `None` where there is none.
            mode: `"max"` or `"min"`, the better direction of the value.
            min_delta: The change that counts as better.

        Returns:
            `False` too where they are equal.

        Example:
            >>> first, second = Result(0.0, 3.0), Result(0.0, 2.0)
            >>> second.is_better(first, "max"), first.is_better(first, "max")
            (True, False)
            >>> Result(1.0, 9.0).is_better(second, "max")
            True
        """
        if best is None or math.isnan(self.value):
            return not math.isnan(self.value)
        if self.value == best.value:
            return self.loss < best.loss
        gain = self.value - best.value
        return (gain if mode == "max" else -gain) > min_delta


class BestEpoch(keras.callbacks.Callback):
    """Base of the callbacks that compare an epoch with the best before it.

    Args:
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Raises:
        ValueError: If `mode` is unknown.
    """

    def __init__(self, monitor: str, mode: str) -> None:
        super().__init__()
        check_mode(mode)
        self.monitor = monitor
        self.mode = mode
        self.best: float | None = None
        self.best_loss = math.inf

    def improved(
        self, logs: Mapping[str, Any] | None, min_delta: float = 0.0
    ) -> bool:
        """Compare an epoch with the best one, and keep the better.

        Args:
            logs: Those of `on_epoch_end`.
            min_delta: The change of the value that counts as better.

        Returns:
            Whether the epoch is the best so far.

        Raises:
            ValueError: If the logs lack the value.
        """
        result = Result.of(logs, self.monitor)
        best = None
        if self.best is not None:
            best = Result(self.best, self.best_loss)
        if not result.is_better(best, self.mode, min_delta):
            return False
        self.best, self.best_loss = result
        return True

    def get_state(self) -> dict[str, Any]:
        """Return the best result so far."""
        finite = not math.isinf(self.best_loss)
        loss = {"loss": self.best_loss} if finite else {}
        return {"best": self.best} | loss

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the best result of an earlier run."""
        self.best = state["best"]
        self.best_loss = state.get("loss", math.inf)
