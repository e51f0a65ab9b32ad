"""How a client asks: in what portions, how often and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ClientSettings:
    """What a client was told; the arguments of `TranslationClient`.

    Example:
        >>> ClientSettings(timeout=0)
        Traceback (most recent call last):
        ValueError: Expected: `timeout`, seconds of more than 0. Received: 0.
    """

    timeout: float = 30.0
    request_timeout: float | None = None
    attempts: int = 5
    batch_size: int = 32
    concurrency: int = 4
    alignment_step: Literal["produces", "reads"] = "produces"

    def __post_init__(self) -> None:
        """Refuses what cannot be."""
        for name in ("timeout", "request_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < float("inf"):
                raise ValueError(
                    f"Expected: `{name}`, seconds of more than 0. Received: "
                    f"{seconds!r}."
                )
        for name in ("attempts", "batch_size", "concurrency"):
            number = getattr(self, name)
            if not isinstance(number, int) or number < 1:
                raise ValueError(
                    f"Expected: `{name}`, a number of 1 or more. Received: "
                    f"{number!r}."
                )
        if self.alignment_step not in ("produces", "reads"):
            raise ValueError(
                "Expected: `alignment_step`, 'produces' or 'reads'. Received: "
                f"{self.alignment_step!r}."
            )
