"""Progress of a training run, on a terminal or in a file."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from luong_keras.progress import (
    Advance,
    clock,
    format_rounded,
    progress_bar,
    show_line,
)
from luong_keras.tables import format_score
from luong_keras.training.epoch_logs import find_result
from luong_keras.training.monitoring import BestEpoch
from luong_keras.training.schedules import current_rate

_NARROWEST = 60  # columns that a redrawn line needs
_SECONDS_A_LINE = 600.0  # between lines of a file, within an epoch
_SECONDS_A_RATE = 10.0


class TrainingProgress(BestEpoch):
    """Callback that shows the state of a run, and the results of each epoch.

    On a terminal it redraws one line four times a second, with the epoch and
    the step, the time left for the epoch and for the run, the loss, the
    perplexity, the best validation score so far, the target tokens per second
    and the learning rate; a narrow terminal cuts the end of the line. If no
    line can be redrawn (in a file, on a terminal without a cursor or with fewer
    than 60 columns), it prints one line per epoch, and in long epochs one line
    every ten minutes.

    It only reads the logs that Keras passes to each callback and, every ten
    seconds, the learning rate, so it waits for the device no more than the
    progress bar of Keras. Put it after the callbacks that add to the logs, use
    `verbose=0`, and use it as a context manager: an error in training then
    leaves the terminal usable.

    Args:
        monitor: The key of the validation score in the logs of an epoch.
        count: The key of a `TokenCount` metric in the logs; the key in the logs
            may begin with the name of an output.
        validation_batches: The number of batches of `validation_data`.
        mode: `"max"` or `"min"`, the better direction of the score.
        title: The displayed name of the score.

    Raises:
        ValueError: If `mode` is unknown.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse", jit_compile=False)
        >>> with TrainingProgress() as progress:
        ...     _ = model.fit(
        ...         np.zeros((8, 1)), np.zeros((8, 1)), batch_size=2, epochs=2,
        ...         callbacks=[progress], verbose=0,
        ...     )
        epoch 1/2 in 0:0..., loss 0, learning rate 0.01
        epoch 2/2 in 0:0..., loss 0, learning rate 0.01
    """

    def __init__(
        self,
        monitor: str = "val_bleu",
        count: str = "words",
        validation_batches: int | None = None,
        mode: str = "max",
        title: str = "BLEU",
    ) -> None:
        super().__init__(monitor, mode)
        self.title = title
        self.count = count
        self.validation_batches = validation_batches
        #: The number of batches trained in this process.
        self.steps_done = 0
        self._display = contextlib.ExitStack()
        self._advance: Advance = lambda count: None
        self._show: Callable[[], None] = lambda: None
        self._logs: Mapping[str, Any] = {}
        self._epoch = self._step = self._steps = 0
        self._rate: float | None = None
        self._epoch_start = self._rate_due = 0.0
        # Time, step and tokens after the first step of an epoch, which may
        # include compilation.
        self._first: tuple[float, int, float] | None = None
        # End of the last epoch's batches, and seconds until the next epoch.
        self._train_end = self._seconds_between = 0.0

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *error: object) -> None:
        self._display.close()

    def on_epoch_begin(
        self, epoch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Start the line of this epoch."""
        self._epoch_start = time.monotonic()
        if self._train_end:
            self._seconds_between = self._epoch_start - self._train_end
        self._rate_due = 0.0
        self._epoch, self._step = epoch + 1, 0
        self._steps = self.params.get("steps") or 0
        self._first, self._logs = None, {}
        line = show_line(
            self._format_line, _SECONDS_A_LINE, sys.stdout, _NARROWEST
        )
        self._show = self._display.enter_context(line)

    def on_train_batch_begin(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Read the step at which a resumed epoch continues."""
        self._step = self._step or batch

    def on_train_batch_end(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Record the step, and show it."""
        now, step = time.monotonic(), batch + 1
        self._logs = logs or {}
        self.steps_done += step - self._step
        self._step, self._steps = step, max(self._steps, step)
        if self._first is None:
            self._first = now, step, find_result(self._logs, self.count) or 0.0
        if now >= self._rate_due:
            self._rate = current_rate(self.model.optimizer)
            self._rate_due = now + _SECONDS_A_RATE
        if step == self._steps:
            self._train_end = now
            self._display.close()
        else:
            self._show()

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Replace the training line by the progress of the validation."""
        if self._epoch and not self.model.stop_training:
            self._display.close()
            bar = progress_bar("validation perplexity", self.validation_batches)
            self._advance = self._display.enter_context(bar)

    def on_test_batch_end(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Advance the validation bar."""
        self._advance(1)

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Remove the validation bar."""
        self._advance = lambda count: None
        self._display.close()

    def on_epoch_end(
        self, epoch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Print the results of the epoch."""
        self._display.close()
        self._logs = logs = logs or {}
        self._rate = logs.get("learning_rate", self._rate)
        score, best = logs.get(self.monitor), self.best
        if score is not None and self.improved(logs):
            best = None
        seconds = clock(time.monotonic() - self._epoch_start)
        parts = [
            f"epoch {epoch + 1}/{self.params.get('epochs', epoch + 1)} in "
            f"{seconds}",
            *self._format_results(),
            _format_part(
                "validation {:.4g}",
                find_result(self._logs, "perplexity", validation=True),
            ),
            _format_score(self.title, score),
            _format_score("best", best),
            *self._format_speeds(logs.get("tokens_per_second")),
        ]
        print(", ".join(filter(None, parts)), flush=True)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Stop redrawing the line."""
        self._display.close()

    def _format_line(self) -> str:
        """Return the line of state within an epoch, important parts first."""
        epochs = self.params.get("epochs") or self._epoch
        seconds, speed = self._measure_pace()
        remaining = None
        if seconds is not None:
            epoch_left = (self._steps - self._step) * seconds
            epochs_left = epochs - self._epoch
            run_left = epochs_left * self._steps * seconds + epoch_left
            run_left += (epochs_left + 1) * self._seconds_between
            remaining = (
                f"{clock(epoch_left)} left, {clock(run_left)} to the end"
            )
        parts = [
            f"epoch {self._epoch}/{epochs}, step {self._step}/{self._steps}",
            remaining or ("" if self._logs else "compiling"),
            *self._format_results(),
            _format_score(f"best {self.title}", self.best),
            *self._format_speeds(speed),
        ]
        return ", ".join(filter(None, parts))

    def _measure_pace(self) -> tuple[float | None, float | None]:
        """Return the seconds per step and tokens per second of this epoch."""
        if self._first is None or self._step == self._first[1]:
            return None, None
        start, step, tokens = self._first
        seconds = time.monotonic() - start
        count = find_result(self._logs, self.count)
        speed = None if count is None else (count - tokens) / seconds
        return seconds / (self._step - step), speed

    def _format_results(self) -> list[str]:
        return [
            _format_part("loss {:.4g}", self._logs.get("loss")),
            _format_part(
                "perplexity {:.4g}", find_result(self._logs, "perplexity")
            ),
        ]

    def _format_speeds(self, speed: float | None) -> list[str]:
        tokens = "" if speed is None else f"{format_rounded(speed)} tokens/s"
        return [tokens, _format_part("learning rate {:.3g}", self._rate)]


def _format_part(text: str, value: float | None) -> str:
    """Return a part of a line, empty if the value is None."""
    return "" if value is None else text.format(value)


def _format_score(name: str, score: float | None) -> str:
    return "" if score is None else f"{name} {format_score(score)}"
