"""A value that decides which epoch is better than another."""

from collections.abc import Mapping
from typing import Any


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


def is_better(value: float, best: float | None, mode: str) -> bool:
    """Whether a value is the best so far.

    Args:
        value: The new one; a NaN is never better.
        best: The best one before, `None` where there is none.
        mode: `"max"` or `"min"`, the better direction.

    Returns:
        `False` too where they are equal.

    Example:
        >>> is_better(2.0, None, "max"), is_better(2.0, 2.0, "max")
        (True, False)
    """
    if best is None:
        return value == value
    return value > best if mode == "max" else value < best
