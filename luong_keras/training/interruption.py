"""Snapshots while `fit` runs, and a clean early end of `fit`."""

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from luong_keras.config.checks import check_integers
from luong_keras.ops.devices import generator_states, set_generator_states
from luong_keras.training.snapshot import Snapshot, check_states
from luong_keras.training.snapshot_file import previous_path


class StopOnSignal(keras.callbacks.Callback):
    """Callback that stops after a batch, at a signal or a deadline.

    The first signal sets a flag and restores the old handlers, so a second
    signal ends the process at once. Python allows signal handlers only in the
    main thread; in another thread the callback ignores signals.

    With a snapshot path, `luong_keras.training.fit.fit` can resume the run from
    exactly this batch.

    If several processes train together, all must stop after the same batch:
    they agree every `agree_every` batches.

    Args:
        signals: The signals that stop the run.
        deadline: The time to stop, on the clock of `time.monotonic`.
        agree: A function that takes whether this process should stop and
            returns whether any process should; all processes call it at the
            same batches. `None` for a single process.
        agree_every: The number of batches between calls of `agree`.

    Raises:
        ValueError: If `agree_every` is not positive.

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
        check_integers(agree_every=agree_every)
        self.signals = signals
        self.deadline = deadline
        self.agree = agree
        self.agree_every = agree_every
        #: The signal that arrived, or None.
        self.received: signal.Signals | None = None
        self._agreed = self._others_stop = False
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Install the handlers."""
        self.received = None
        self._agreed = self._others_stop = False
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self.signals:
            self._previous_handlers[number] = signal.signal(
                number, self._handle_signal
            )

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived or the deadline has passed."""
        # Another callback may have stopped the run.
        self._others_stop = self._others_stop or self.model.stop_training
        # A step may have several batches.
        if (batch + 1) % self.agree_every < self.model.steps_per_execution:
            self._agree_with_others()
        # Several processes stop when all have agreed.
        self.model.stop_training = self.stopping

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stop if a signal arrived during validation."""
        self._agree_with_others()
        if self.stopping:
            self.model.stop_training = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Restore the old handlers."""
        self.restore_handlers()

    def restore_handlers(self) -> None:
        """Restore the old handlers; a second call does nothing."""
        while self._previous_handlers:
            number, handler = self._previous_handlers.popitem()
            # None means a handler that Python did not install.
            signal.signal(number, handler or signal.SIG_DFL)

    @property
    def stopping(self) -> bool:
        """True if the run should stop."""
        return self._should_stop if self.agree is None else self._agreed

    @property
    def _should_stop(self) -> bool:
        is_late = (
            self.deadline is not None and time.monotonic() >= self.deadline
        )
        return is_late or self._others_stop or self.received is not None

    def _agree_with_others(self) -> None:
        if self.agree is not None:
            self._agreed = self.agree(self._should_stop)

    def _handle_signal(self, number: int, frame: Any) -> None:
        self.received = signal.Signals(number)
        self.restore_handlers()
        # Not `print`, because the signal may have interrupted a `print`.
        message = (
            f"\n{self.received.name}: stopping after this batch; "
            "a second signal stops at once.\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, message.encode())


class SnapshotCallback(keras.callbacks.Callback):
    """Callback that saves a `Snapshot` every N batches and after each epoch.

    It must be the last callback, so that the snapshot at the end of an epoch
    holds the changes of the other callbacks. Nothing is saved between the last
    batch of an epoch and its end. A killed run loses at most N batches and the
    validation.

    Two files are kept, the latest snapshot and the previous one, which is used,
    with a warning, if the latest is damaged or missing.

    Args:
        path: The file.
        every_steps: The number N of batches between snapshots.
        callbacks: The callbacks whose state belongs to the run. If a
            callback ends the run within an epoch, a snapshot is saved.
        writes: Whether to save snapshots. If several processes train together,
            only the first saves, and all are restored.

    Raises:
        ValueError: If `every_steps` is not positive.

    Example:
        >>> SnapshotCallback("run/snapshot.npz", every_steps=500).every_steps
        500
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every_steps: int = 1000,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        writes: bool = True,
    ) -> None:
        super().__init__()
        check_integers(every_steps=every_steps)
        self.path = Path(path)
        self.every_steps = every_steps
        self.callbacks = callbacks
        stops = (item for item in callbacks if isinstance(item, StopOnSignal))
        # The default is never installed as a callback, so it never stops.
        self.stop = next(stops, StopOnSignal())
        self.writes = writes
        self._steps_per_epoch = 0
        self._epoch = 0
        self._resumed: Snapshot | None = None
        # Of the last training batch: on torch, opening data draws a number,
        # which must not count.
        self._generator_states: list[np.ndarray] = []

    def restore(
        self, model: keras.Model, steps_per_epoch: int | None = None
    ) -> int:
        """Restore the model and the callbacks from the snapshot.

        Args:
            model: The compiled model, before `fit`.
            steps_per_epoch: The current number of batches per epoch.

        Returns:
            The number of batches seen, 0 without a snapshot.

        Raises:
            ValueError: If no snapshot is intact, or the snapshot belongs to
                another model or has epochs of another length.
        """
        self._resumed = self._read_snapshot()
        if self._resumed is None:
            return 0
        saved = self._resumed.steps_per_epoch
        if None not in (saved, steps_per_epoch) and saved != steps_per_epoch:
            raise ValueError(
                "The epochs of a run must keep their length. "
                f"Expected: steps_per_epoch={saved}, as in {self.path}. "
                f"Received: steps_per_epoch={steps_per_epoch}. Train on data "
                "of the old length, or use a new folder for a new run."
            )
        if not (model.built or model.variables):
            raise ValueError(
                "A snapshot is restored into a built model. Received: "
                f"{model.name!r}, without weights. Call it on a batch first."
            )
        self._resumed.apply(model, self.callbacks, self.path)
        self._generator_states = self._resumed.generator_states
        return self._resumed.position

    def lacks_metrics(self, model: keras.Model) -> bool:
        """Test whether saved metrics have no variables in the model."""
        saved = [] if self._resumed is None else self._resumed.arrays
        names = [name for name in saved if name.startswith("metrics/")]
        return len(names) != len(model.metrics_variables)

    def _read_snapshot(self) -> Snapshot | None:
        """Return the latest snapshot that is not damaged, or None."""
        previous = previous_path(self.path)
        try:
            return Snapshot.read(self.path)
        except FileNotFoundError:
            if not previous.exists():
                return None
            problem = f"There is no {self.path}."
        except ValueError as error:
            if not previous.exists():
                raise
            problem = str(error)
        snapshot = Snapshot.read(previous)
        warnings.warn(
            f"{problem} The run continues from the snapshot before, "
            f"{previous}, after batch {snapshot.position}.",
            stacklevel=2,
        )
        return snapshot

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Read the number of batches per epoch."""
        if not self.params.get("steps"):
            raise ValueError(
                "A snapshot needs the length of an epoch. Received: "
                f"steps={self.params.get('steps')}. Give `steps_per_epoch` "
                "to `fit`."
            )
        self._steps_per_epoch = self.params["steps"]
        check_states(self.callbacks)

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Restore the sums of the metrics of a resumed epoch."""
        self._epoch = epoch
        resumed, self._resumed = self._resumed, None
        if resumed is not None and resumed.position % self._steps_per_epoch:
            resumed.apply_metrics(self.model, self.path)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Restore the states of torch's generators once."""
        set_generator_states(self._generator_states)
        self._generator_states = []

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save after every N batches, or before the run stops."""
        if batch + 1 >= self._steps_per_epoch:
            self._generator_states = generator_states()
            return
        position = self._epoch * self._steps_per_epoch + batch + 1
        # A step may have several batches.
        due = position % self.every_steps < self.model.steps_per_execution
        stops = self.stop.stopping or self.model.stop_training
        if due or stops:
            self._save_snapshot(position)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save at the end of the epoch."""
        set_generator_states(self._generator_states)
        self._save_snapshot((epoch + 1) * self._steps_per_epoch)

    def _save_snapshot(self, position: int) -> None:
        if self.writes:
            Snapshot.capture(
                self.model, position, self.callbacks, self._steps_per_epoch
            ).write(self.path)
        if self.stop.stopping:
            # The signal may have arrived after `stop` checked in this batch.
            self.model.stop_training = True
            print(
                f"\nStopped after batch {position}, saved in {self.path}. "
                "The same command continues from there.",
                flush=True,
            )
