"""A clean end on Ctrl-C, by a signal or in time."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import keras


class StopOnSignal(keras.callbacks.Callback):
    """Stop after the current batch on Ctrl-C or SIGTERM, or when time is up.

    The first signal sets a flag and puts the old handlers back, so a second
    one ends the process at once. Python allows signal handlers in the main
    thread alone; in another one the callback does nothing.

    Given to `luong_keras.training.fit.fit` together with a snapshot path,
    the run can be resumed from the very batch. SIGUSR1, where there is one,
    asks that one for a snapshot, and the run goes on.

    Where several processes train together, all must stop after the same
    batch: every `agree_every` batches they ask each other.

    Args:
        signals: The signals to stop at.
        deadline: When to stop, on the clock of `time.monotonic`.
        agree: A function of whether this process is to stop that returns
            whether any of them is; all call it at the same batches. `None`
            for a process that is alone.
        agree_every: The batches from one such question to the next.

    Example:
        >>> StopOnSignal().stopping
        False
        >>> StopOnSignal(deadline=0).stopping
        True
    """

    def __init__(
        self,
        signals: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM),
        deadline: float | None = None,
        agree: Callable[[bool], bool] | None = None,
        agree_every: int = 10,
    ) -> None:
        super().__init__()
        self.signals = signals
        self.deadline = deadline
        self.agree = agree
        self.agree_every = agree_every
        #: The signal that arrived, or None.
        self.received: signal.Signals | None = None
        #: Whether a snapshot was asked for and not made yet.
        self.snapshot_wanted = False
        self._agreed = False
        self._previous: dict[signal.Signals, Any] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Install the handlers."""
        self.received = None
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self.signals:
            self._previous[number] = signal.signal(number, self._handle)
        if hasattr(signal, "SIGUSR1"):  # Windows has none.
            self._previous[signal.SIGUSR1] = signal.signal(
                signal.SIGUSR1, self._want_snapshot
            )

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived or time is up."""
        if (batch + 1) % self.agree_every == 0:
            self._ask_the_others()
        self._stop_if_asked()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived during validation."""
        self._ask_the_others()
        self._stop_if_asked()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Put the old handlers back."""
        self.restore_handlers()

    def restore_handlers(self) -> None:
        """Put the old handlers back; a second call does nothing."""
        while self._previous:
            number, handler = self._previous.popitem()
            # None stands for a handler that Python did not install.
            signal.signal(number, handler or signal.SIG_DFL)

    @property
    def stopping(self) -> bool:
        """Whether the run is to stop."""
        return self._asked if self.agree is None else self._agreed

    @property
    def _asked(self) -> bool:
        late = self.deadline is not None and time.monotonic() >= self.deadline
        return late or self.received is not None

    def _ask_the_others(self) -> None:
        if self.agree is not None:
            self._agreed = self.agree(self._asked)

    def _stop_if_asked(self) -> None:
        if self.stopping:
            self.model.stop_training = True

    def _want_snapshot(self, number: int, frame: Any) -> None:
        self.snapshot_wanted = True

    def _handle(self, number: int, frame: Any) -> None:
        self.received = signal.Signals(number)
        self.restore_handlers()
        # Not `print`: the signal may have arrived within one.
        message = (
            f"\n{self.received.name}: stopping after this batch; "
            "once more stops at once.\n"
        )
        os.write(2, message.encode())
