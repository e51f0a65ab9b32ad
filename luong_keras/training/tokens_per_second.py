"""The speed of training in target tokens."""

import time
from typing import Any

import keras


class TokensPerSecond(keras.callbacks.Callback):
    """Add the target tokens a second of each epoch to its logs.

    The tokens, words or parts of words, are those a `TokenCount` metric
    counted. The time runs from the begin of the epoch to the end of its last
    training batch: compilation and snapshots are in it, validation is not. It
    is saved with the run, so an epoch that was interrupted gets its full time.

    Args:
        count: The key of the token count in the logs. Keras puts the name of
            the output before it where there are several; a key that ends in
            `_` and this is found as well.
        name: The key of the result.

    Example:
        >>> speed = TokensPerSecond()
        >>> speed.set_state({"seconds": 2.0})
        >>> speed.on_epoch_begin(0)
        >>> logs = {"losses_words": 100.0}
        >>> speed.on_epoch_end(0, logs)
        >>> logs["tokens_per_second"]
        50.0
    """

    def __init__(
        self, count: str = "words", name: str = "tokens_per_second"
    ) -> None:
        super().__init__()
        self.count = count
        self.name = name
        self._seconds_before = 0.0
        self._started: float | None = None
        self._last = 0.0

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Start the clock."""
        self._started = self._last = time.perf_counter()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Read the clock."""
        self._last = time.perf_counter()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Add the speed to the logs."""
        seconds = self._seconds
        self._started, self._seconds_before = None, 0.0
        if logs is None or seconds <= 0:
            return
        keys = [
            key
            for key in logs
            if key == self.count
            or (key.endswith(f"_{self.count}") and not key.startswith("val_"))
        ]
        if not keys:
            raise ValueError(
                f"The logs of the epoch must hold {self.count!r}. Received: "
                f"{sorted(logs)}. Give a `TokenCount` metric to `compile`."
            )
        logs[self.name] = float(logs[keys[0]]) / seconds

    @property
    def _seconds(self) -> float:
        running = 0.0 if self._started is None else self._last - self._started
        return self._seconds_before + running

    def get_state(self) -> dict[str, Any]:
        """Return the time of the unfinished epoch."""
        return {"seconds": self._seconds}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the time of the unfinished epoch."""
        self._seconds_before = state["seconds"]
