"""`model.fit` for runs that may be interrupted anywhere."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import keras

from luong_keras.files.folder_lock import lock_folder
from luong_keras.ops.devices import check_one_replica
from luong_keras.tables import pluralize
from luong_keras.training.interruption import SnapshotCallback, StopOnSignal
from luong_keras.training.monitoring import StopOnPlateau
from luong_keras.training.schedules import current_rate, inner_optimizer
from luong_keras.training.snapshot import make_optimizer_variables


@runtime_checkable
class Batches(Protocol):
    """Training data that can start at any batch.

    The order of the data must depend only on the position: `dataset(7, 9)`
    must return what `dataset(0, 9)` returns after seven batches.
    """

    steps_per_epoch: int

    def dataset(self, start_step: int, stop_step: int) -> Any:
        """Return the batches from `start_step` up to `stop_step`.

        Args:
            start_step: The number of earlier batches, over all epochs.
            stop_step: The position of the first batch not to return.

        Returns:
            Anything that `keras.Model.fit` accepts as `x`.
        """
        ...


def fit(
    training_model: keras.Model,
    batches: Batches,
    *,
    epochs: int,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    snapshot_path: str | os.PathLike[str] | None = None,
    snapshot_steps: int = 1000,
    writes_snapshots: bool = True,
    validation_data: Any = None,
    validation_steps: int | None = None,
    verbose: str | int = "auto",
) -> keras.callbacks.History:
    """Train up to a given epoch, from the snapshot if one exists.

    It calls `keras.Model.fit`, and calls it twice for a run resumed within an
    epoch: for the rest of that epoch, then for later epochs. The callbacks see
    one run with the numbers of an uninterrupted run: `on_train_begin` and
    `on_train_end` are called once, batches are counted from the beginning of
    their epoch, and the metrics cover the whole epoch. `on_epoch_end` of an
    epoch that was stopped midway is called only after the epoch is resumed and
    finished. A run that `StopOnPlateau` has ended does not train further.

    Args:
        training_model: The compiled model; give `compile` an explicit
            `jit_compile`.
        batches: The training data: an object with `steps_per_epoch`, the number
            of batches of an epoch, and `dataset(start_step, stop_step)`, which
            returns the batches of those steps, counted over all epochs, as
            anything that `keras.Model.fit` accepts as `x`.
        epochs: The total number of epochs, earlier runs included.
        callbacks: The callbacks in the order in which they see each event. A
            callback that adds to the logs precedes those that read them. The
            snapshot holds the state of callbacks with `get_state` and
            `set_state`.
        snapshot_path: The file that saves the run and resumes it; `None` for a
            run that cannot be resumed. While the call runs, the lock
            `.NAME.lock` in the same folder keeps other processes out.
        snapshot_steps: The number of batches between snapshots.
        writes_snapshots: `False` in all processes but the first, if several
            train together: they are restored and save nothing.
        validation_data: As in `keras.Model.fit`; evaluated after each epoch.
        validation_steps: As in `keras.Model.fit`.
        verbose: As in `keras.Model.fit`.

    Returns:
        The history of the epochs that ended in this call.

    Raises:
        ValueError: If `batches` is not such an object, if the snapshot does
            not fit the model, has epochs of another length or is later than
            the last epoch, if the model of a snapshot is not built, if the
            batches run out early (nothing is saved at the end of that epoch),
            for an optimizer that replaces the weights by averages at the end
            of a `fit`, for `BackupAndRestore`, or for a model with several
            replicas of `tf.distribute`.
        TypeError: If a snapshot cannot hold the state of a callback.
        NonFiniteError: If a snapshot would have weights that are not finite.
        FolderInUseError: If another process trains with this snapshot.

    Example:
        >>> import keras, numpy as np
        >>> class Rows:
        ...     steps_per_epoch = 4
        ...     def dataset(self, start_step, stop_step):
        ...         for step in range(start_step, stop_step):
        ...             yield np.full((1, 2), step % 4.0), np.zeros((1, 1))
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse", jit_compile=False)
        >>> fit(model, Rows(), epochs=3, verbose=0).epoch
        [0, 1, 2]
    """
    callbacks = list(callbacks)
    steps = _check_arguments(training_model, batches, callbacks)
    with contextlib.ExitStack() as stack:
        position = 0
        if snapshot_path is not None:
            if writes_snapshots:
                path = Path(snapshot_path)
                stack.enter_context(lock_folder(path.parent, path.name))
            snapshot = SnapshotCallback(
                snapshot_path,
                snapshot_steps,
                tuple(callbacks),
                writes_snapshots,
            )
            position = snapshot.restore(training_model, steps)
            callbacks.append(snapshot)
        return _fit_from(
            position,
            training_model,
            batches,
            epochs,
            callbacks,
            verbose,
            validation_data=validation_data,
            validation_steps=validation_steps,
        )


def _fit_from(
    position: int,
    training_model: keras.Model,
    batches: Batches,
    epochs: int,
    callbacks: list[keras.callbacks.Callback],
    verbose: str | int,
    **validation: Any,
) -> keras.callbacks.History:
    """Train the rest of a run, after the first `position` batches."""
    steps = batches.steps_per_epoch
    end = epochs * steps
    if position > end:
        raise ValueError(
            f"The snapshot is {position / steps:.4g} epochs into the run, "
            "which cannot be taken back. Expected: epochs of at least "
            f"{-(-position // steps)}. Received: epochs={epochs}. Start a "
            "shorter run without this snapshot, in a new folder."
        )
    has_ended = any(
        isinstance(item, StopOnPlateau) and item.ended for item in callbacks
    )
    if position and position % steps == 0 and has_ended:
        if position < end:
            print(
                f"ended by its patience after epoch {position // steps}; a "
                "larger patience continues the run"
            )
        end = position
    if position and position == end and verbose:
        trained = pluralize(position // steps, "epoch")
        print(f"already trained for {trained}, by its snapshot")
    snapshot = callbacks[-1] if callbacks else None
    if (
        position % steps
        and end > position
        and isinstance(snapshot, SnapshotCallback)
        and snapshot.lacks_metrics(training_model)
    ):
        # TensorFlow would otherwise make the metrics' variables in the first
        # training batch, too late to restore their sums.
        training_model.evaluate(
            batches.dataset(position, position + 1), steps=1, verbose=0
        )
    on_tensorflow = keras.backend.backend() == "tensorflow"
    if on_tensorflow and training_model.built and training_model.compiled:
        # A step that makes the optimizer's variables would be traced twice.
        with training_model.distribute_strategy.scope():
            make_optimizer_variables(training_model)
    # The rest of a begun epoch, then whole epochs.
    epoch_end = -(-position // steps) * steps
    legs = [
        (start, stop)
        for start, stop in ((position, epoch_end), (epoch_end, end))
        if start < stop <= end
    ]
    run = _RunCallbacks(
        callbacks, training_model, position, steps, epochs, verbose, legs
    )
    try:
        for start, stop in legs:
            run.leg = start, stop
            data = batches.dataset(start, stop)
            num_batches = _num_batches(data)
            if num_batches is not None and num_batches < stop - start:
                # Keras would repeat the batches from the beginning.
                raise run.missing_batches_error(start + num_batches)
            training_model.fit(
                data,
                initial_epoch=start // steps,
                epochs=-(-stop // steps),
                steps_per_epoch=min(steps, stop - start),
                callbacks=run,
                shuffle=False,  # `batches` decides the order.
                validation_freq=_WholeEpochs(run, steps),
                **validation,
            )
            if training_model.stop_training:
                break
    finally:
        for callback in callbacks:
            if isinstance(callback, StopOnSignal):
                callback.restore_handlers()
    return run.history


# Keras passes callbacks the last batch of each execution. Before 3.11 it passed
# the first.
_NAMES_FIRST_BATCH = keras.__version__.startswith("3.10.")


class _RunCallbacks(keras.callbacks.CallbackList):
    """Callback list that sees several calls of `fit` as one run."""

    def __init__(
        self,
        callbacks: list[keras.callbacks.Callback],
        model: keras.Model,
        position: int,
        steps: int,
        epochs: int,
        verbose: str | int,
        legs: list[tuple[int, int]],
    ) -> None:
        self.history = keras.callbacks.History()
        self.history.epoch = []
        super().__init__(
            [*callbacks, self.history],
            add_progbar=verbose != 0,
            model=model,
            verbose=verbose,
            epochs=epochs,
            steps=steps,
        )
        self.position = position
        self.leg = position, position
        self._legs = legs
        self._steps = steps
        self._epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self.leg == self._legs[0]:
            super().on_train_begin(logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.leg == self._legs[-1] or self.model.stop_training:
            super().on_train_end(logs)

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._epoch = epoch
        is_resumed = self.leg[0] % self._steps > 0
        rate = current_rate(self.model.optimizer) if is_resumed else 0.0
        super().on_epoch_begin(epoch, logs)
        variable = getattr(self.model.optimizer, "learning_rate", None)
        if is_resumed and isinstance(variable, keras.Variable):
            # Callbacks have changed the rate of this epoch before.
            variable.assign(rate)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        super().on_train_batch_begin(batch + self.leg[0] % self._steps, logs)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        batch += self.leg[0] % self._steps
        if _NAMES_FIRST_BATCH:
            steps_per_execution = self.model.steps_per_execution
            batch = min(batch + steps_per_execution, self._steps) - 1
        self.position = self._epoch * self._steps + batch + 1
        super().on_train_batch_end(batch, logs)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self.position < (epoch + 1) * self._steps:
            if not self.model.stop_training:
                raise self.missing_batches_error(self.position)
        else:
            super().on_epoch_end(epoch, logs)

    def missing_batches_error(self, end: int) -> ValueError:
        start, stop = self.leg
        epoch, seen = divmod(end, self._steps)
        return ValueError(
            f"`batches.dataset({start}, {stop})` must give {stop - start} "
            f"batches. Received: {end - start}; epoch {epoch + 1} "
            f"has {seen} of its {self._steps}, and its end was not saved. "
            "Give all batches up to `stop_step`, or set `steps_per_epoch` to "
            "their number in an epoch."
        )


class _WholeEpochs(list):
    """Epochs, counted from 1, that end with a validation.

    Keras would also validate after an epoch that was stopped midway. Nobody
    would see the result, and a process asked to end has no time for it. Keras
    accepts a list and tests which epochs it contains.
    """

    def __init__(self, run: _RunCallbacks, steps: int) -> None:
        super().__init__()
        self._run, self._steps = run, steps

    def __contains__(self, epoch: Any) -> bool:
        return self._run.position == epoch * self._steps


def _num_batches(data: Any) -> int | None:
    """Return the number of batches of a data set, or None if unknown."""
    count = getattr(data, "cardinality", None)
    if count is not None:
        count = int(count() if callable(count) else count)
        return count if count >= 0 else None  # Unknown, or endless.
    if isinstance(data, keras.utils.PyDataset):
        return data.num_batches
    return None


def _check_arguments(
    model: keras.Model,
    batches: Batches,
    callbacks: Sequence[keras.callbacks.Callback],
) -> int:
    """Check the arguments, and return the number of batches of an epoch."""
    if not isinstance(batches, Batches):
        raise ValueError(
            "`batches` must be an object with `steps_per_epoch` and "
            "`dataset(start_step, stop_step)`, since a run may be resumed at "
            f"any batch. Received: a {type(batches).__name__}. Use "
            "`model.fit`, which takes arrays and data sets, for runs that "
            "need no snapshots."
        )
    steps, unit = batches.steps_per_epoch, model.steps_per_execution
    if steps < 1 or steps % unit:
        raise ValueError(
            "An epoch must have at least one batch and be a multiple of "
            f"`steps_per_execution`. Received: steps_per_epoch={steps}, "
            f"steps_per_execution={unit}."
        )
    check_one_replica(model)
    if any(isinstance(x, keras.callbacks.BackupAndRestore) for x in callbacks):
        raise ValueError(
            "A snapshot resumes a run at any batch, and `BackupAndRestore` "
            "would replace it by the end of an epoch. Leave it out, and give "
            "`snapshot_path`."
        )
    optimizer = inner_optimizer(getattr(model, "optimizer", None))
    if getattr(optimizer, "use_ema", False):
        raise ValueError(
            "Keras replaces the weights by their averages at the end of "
            "every `fit`, so such a run cannot be resumed exactly. Received: "
            f"{type(optimizer).__name__}(use_ema=True). Use use_ema=False."
        )
    return steps
