"""A clean end on Ctrl-C."""

import os
import signal
import threading
from typing import Any

import keras


class StopOnSignal(keras.callbacks.Callback):
    """Stop after the current batch on Ctrl-C or SIGTERM.

    The first signal sets a flag and puts the old handlers back, so a second
    one ends the process at once. Python allows signal handlers in the main
    thread alone; in another one the callback does nothing.

    Given to `luong_keras.training.fit.fit` together with a snapshot path,
    the run can be resumed from the very batch.

    Args:
        signals: The signals to listen to.

    Example:
        >>> StopOnSignal().received is None
        True
    """

    def __init__(
        self,
        signals: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM),
    ) -> None:
        super().__init__()
        self.signals = signals
        #: The signal that arrived, or None.
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Install the handlers."""
        self.received = None
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self.signals:
            self._previous[number] = signal.signal(number, self._handle)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived."""
        self._stop_if_received()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived during validation."""
        self._stop_if_received()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Put the old handlers back."""
        self.restore_handlers()

    def restore_handlers(self) -> None:
        """Put the old handlers back; a second call does nothing."""
        while self._previous:
            number, handler = self._previous.popitem()
            # None stands for a handler that Python did not install.
            signal.signal(number, handler or signal.SIG_DFL)

    def _stop_if_received(self) -> None:
        if self.received is not None:
            self.model.stop_training = True

    def _handle(self, number: int, frame: Any) -> None:
        self.received = signal.Signals(number)
        self.restore_handlers()
        # Not `print`: the signal may have arrived within one.
        message = (
            f"\n{self.received.name}: stopping after this batch; "
            "once more stops at once.\n"
        )
        os.write(2, message.encode())
