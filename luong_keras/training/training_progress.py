"""How far a training is, on the terminal or in a file."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras

from luong_keras.progress import (
    Advance,
    live_line,
    progress_bar,
    terminal,
)
from luong_keras.training.monitoring import Result, check_mode
from luong_keras.training.pace import Pace
from luong_keras.training.progress_line import (
    TrainingState,
    epoch_line,
    running_line,
)
from luong_keras.training.schedules import current_rate

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST = 60  # columns in which the line says enough
_WIDTH_OF_FILES = 120
_SECONDS_A_LINE = 600.0  # in a file, within an epoch
_SECONDS_A_RATE = 10.0


class TrainingProgress(keras.callbacks.Callback):
    """Show the state of a training as one line, and every epoch as another.

    On a terminal the line is redrawn four times a second, with the epoch and
    the step, the loss, the perplexity, the target tokens a second, the
    learning rate, the time that is left to the epoch and to the run, and the
    best validation score so far. Where nothing can be redrawn, in a file, on
    a terminal without a cursor or of fewer than 60 columns, there is a line
    an epoch, and within long epochs one every ten minutes.

    It reads what Keras hands to every callback and the learning rate now and
    then, so it waits for the device no more than Keras' own bar does. Give
    it after the callbacks that add to the logs, with `verbose=0`, and use it
    as a context: an error in the training then leaves the terminal as it was.

    Args:
        monitor: The key of the validation score in the logs of an epoch.
        best: The best one of the epochs before this process, if any.
        count: The key of a `TokenCount` metric in the logs; the name of the
            output may stand before it.
        validation_batches: How many batches `validation_data` has.
        mode: `"max"` or `"min"`, the better direction of the score.
        title: What the score is called.

    Raises:
        ValueError: If `mode` is unknown.

    Example:
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
        best: float | None = None,
        count: str = "count",
        validation_batches: int | None = None,
        mode: str = "max",
        title: str = "BLEU",
    ) -> None:
        super().__init__()
        check_mode(mode)
        self.monitor = monitor
        self.mode = mode
        self.title = title
        self.best = best
        self.count = count
        self.validation_batches = validation_batches
        #: The batches of this process.
        self.steps_done = 0
        self._shown = contextlib.ExitStack()
        self._advance: Advance | None = None
        self._console: Console | None = None
        self._state = TrainingState(0, 0, 0, 0)
        self._wording = 0
        self._pace = Pace()
        self._began = self._trained = 0.0
        # Of the last epoch, from its last batch to the first of the next.
        self._between: float | None = None
        self._rate_due = self._line_due = 0.0

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *error: object) -> None:
        self._shown.close()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Look where the output goes."""
        self._console = terminal(sys.stdout, _NARROWEST)

    def on_epoch_begin(
        self, epoch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Begin the line of this epoch."""
        now = time.monotonic()
        if self._trained:
            self._between = now - self._trained
        self._began, self._rate_due = now, 0.0
        self._line_due = now + _SECONDS_A_LINE
        self._pace.pause()
        self._state = TrainingState(
            epoch + 1,
            self.params.get("epochs") or epoch + 1,
            0,
            self.params.get("steps") or 0,
            speed=self._pace.tokens_a_second,
            best=self.best,
            metric=self.title,
        )
        self._show()

    def on_train_batch_begin(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Take the step at which a resumed epoch goes on."""
        if not self._state.step:
            self._state = dataclasses.replace(self._state, step=batch)

    def on_train_batch_end(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Note the step; the line is drawn by a clock of its own."""
        logs, now, step = logs or {}, time.monotonic(), batch + 1
        self._pace.add(now, step, _named(logs, self.count, math.nan))
        self.steps_done += step - self._state.step
        rate = self._state.rate
        if now >= self._rate_due:
            rate = current_rate(self.model.optimizer)
            self._rate_due = now + _SECONDS_A_RATE
        steps = max(self._state.steps, step)
        self._state = dataclasses.replace(
            self._state,
            step=step,
            steps=steps,
            loss=logs.get("loss"),
            perplexity=_named(logs, "perplexity"),
            speed=self._pace.tokens_a_second,
            rate=rate,
        )
        self._estimate()
        if step == steps:
            self._trained = now
            self._shown.close()
        elif self._console is None and now >= self._line_due:
            self._line_due = now + _SECONDS_A_LINE
            print(running_line(self._state, _WIDTH_OF_FILES)[0], flush=True)

    def _estimate(self) -> None:
        """How long the epoch and the run still take."""
        pace, state = self._pace.seconds_a_step, self._state
        if pace is None:
            return
        epochs = state.epochs - state.epoch
        epoch_left = (state.steps - state.step) * pace
        between = (epochs + 1) * (self._between or 0.0)
        self._state = dataclasses.replace(
            state,
            epoch_left=epoch_left,
            run_left=epoch_left + epochs * state.steps * pace + between,
        )

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Show how far the validation is, in the place of the training."""
        if self._state.epoch and not self.model.stop_training:
            self._shown.close()
            bar = progress_bar("validation perplexity", self.validation_batches)
            self._advance = self._shown.enter_context(bar)

    def on_test_batch_end(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Note the batch."""
        if self._advance is not None:
            self._advance(1)

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Take the bar away."""
        if self._advance is not None:
            self._advance = None
            self._shown.close()

    def on_epoch_end(
        self, epoch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Print what has come of the epoch."""
        self._shown.close()
        logs = logs or {}
        score, best = logs.get(self.monitor), self.best
        if score is not None:
            result = Result(float(score))
            if result.is_better(
                None if best is None else Result(best), self.mode
            ):
                self.best, best = result.value, None
        state = dataclasses.replace(
            self._state,
            epoch=epoch + 1,
            loss=logs.get("loss"),
            perplexity=_named(logs, "perplexity"),
            validation=_named(logs, "perplexity", prefix="val_"),
            rate=logs.get("learning_rate", self._state.rate),
            speed=logs.get("tokens_per_second", self._state.speed),
            seconds=time.monotonic() - self._began,
            score=score,
            best=best,
        )
        width = _WIDTH_OF_FILES
        if self._console is not None:
            width = self._console.width
        print(epoch_line(state, width), flush=True)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Leave the line as it is."""
        self._shown.close()

    def _show(self) -> None:
        """Draws the line until what is shown is closed."""
        if self._console is None:
            return
        self._shown.enter_context(live_line(self._console, self._line))

    def _line(self) -> str:
        assert self._console is not None
        line, self._wording = running_line(
            self._state, self._console.width, self._wording
        )
        if self._state.loss is None and self._pace.seconds_a_step is None:
            line += ", compiling"
        return line


def _named(
    logs: Mapping[str, Any],
    name: str,
    default: float | None = None,
    prefix: str = "",
) -> Any:
    """A result whose name may have that of the model's output before it."""
    for key, value in logs.items():
        own = key.removeprefix("val_")
        of_kind = (own != key) == bool(prefix)
        if of_kind and (own == name or own.endswith(f"_{name}")):
            return value
    return default
