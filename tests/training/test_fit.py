import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from luong_keras.files.folder_lock import FolderInUseError, lock_folder
from luong_keras.training.fit import fit
from luong_keras.training.interruption import StopOnSignal
from luong_keras.training.snapshot import Snapshot
from tests.layer_checks import assert_all_close, small_model
from tests.training import resume_run
from tests.training.fit_helpers import (
    SEVERAL_STEPS,
    Kill,
    Rows,
    call_after_batch,
)

ROOT = Path(__file__).parents[2]
ZEROS = np.zeros((1, 1)), np.zeros((1, 1))
SIGNALS = signal.SIGTERM, signal.SIGINT


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return resume_run.train(tmp_path_factory.mktemp("uninterrupted"))


def check_same_results(resumed, uninterrupted):
    for key in ("log", "best", "digests"):
        assert resumed[key] == uninterrupted[key], key


@pytest.mark.slow
def test_a_killed_run_resumes_to_exactly_the_same_result(
    tmp_path, uninterrupted
):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["KERAS_BACKEND"] = keras.backend.backend()
    # XLA must compile both parts with the option of tests/conftest.py.
    environment.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
    killed = subprocess.run(
        [sys.executable, resume_run.__file__, tmp_path, "12"],
        env=environment,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    # The second epoch has batches 8 to 14; the last snapshot is of batch 9.
    assert Snapshot.read(tmp_path / "snapshot.npz").position == 9
    resumed = resume_run.train(tmp_path)
    assert resumed["epochs"] == [1, 2]
    check_same_results(resumed, uninterrupted)


@pytest.mark.parametrize("step", [11, 14])
def test_a_signal_stops_after_the_batch_and_the_run_resumes(
    tmp_path, uninterrupted, capfd, step
):
    handlers = [*map(signal.getsignal, SIGNALS)]
    end = resume_run.SignalAt(signal.SIGTERM, step)
    stopped = resume_run.train(tmp_path, end)
    # Step 14 is the last of its epoch, so this epoch ends.
    assert stopped["epochs"] == ([0] if step == 11 else [0, 1])
    assert Snapshot.read(tmp_path / "snapshot.npz").position == step
    assert f"Stopped after batch {step}" in capfd.readouterr().out
    assert handlers == [*map(signal.getsignal, SIGNALS)]
    check_same_results(resume_run.train(tmp_path), uninterrupted)
    if step == 14:  # A finished run is not trained further.
        again = resume_run.train(tmp_path)
        assert again["epochs"] == []
        check_same_results(again, uninterrupted)


def fit_rows(rows=None, model=None, **options):
    """Train a model on rows; by default `small_model` on `Rows`."""
    return fit(model or small_model(), rows or Rows(), verbose=0, **options)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("kill", [Kill(1, batch=3), Kill(1)])
def test_callbacks_see_one_run_after_resuming(path, kill):
    # A run that is killed in validation repeats the validation.
    def run(callback):
        fit_rows(
            epochs=2,
            callbacks=[callback, StopOnSignal()],
            snapshot_path=path,
            snapshot_steps=1,
            validation_data=ZEROS,
        )

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(kill)
    assert signal.getsignal(signal.SIGINT) is handler
    seen = []
    events = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: seen.append("begin"),
        on_train_end=lambda logs: seen.append("end"),
        on_epoch_begin=lambda epoch, logs: seen.append(f"epoch {epoch}"),
        on_epoch_end=lambda epoch, logs: seen.append((epoch, *logs)),
        on_train_batch_end=lambda batch, logs: seen.append(batch),
    )
    run(events)
    numbers = "loss", "val_loss"
    assert seen == [
        "begin",
        "epoch 0",
        3,
        (0, *numbers),
        "epoch 1",
        0,
        1,
        2,
        3,
        (1, *numbers),
        "end",
    ]


def test_schedules_change_the_rate_of_a_resumed_epoch_once(path):
    def run(*callbacks, **options):
        keras.utils.set_random_seed(1)
        model = small_model()
        schedule = keras.callbacks.LearningRateScheduler(
            lambda epoch, rate: rate / 2
        )
        fit_rows(
            model=model, epochs=2, callbacks=[schedule, *callbacks], **options
        )
        return [weight.tolist() for weight in model.get_weights()]

    run(StopOnSignal(deadline=0), snapshot_path=path)
    assert run(snapshot_path=path) == run()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("stop_after, validated", [(6, [3]), (8, [3, 7])])
def test_epochs_stopped_midway_are_not_validated(stop_after, validated):
    seen = []

    class Stop(keras.callbacks.Callback):
        """Callback that records the batch before a validation, and stops."""

        batches = 0

        def on_train_batch_end(self, batch, logs=None):
            self.batches += 1
            self.model.stop_training = self.batches == stop_after

        def on_test_begin(self, logs=None):
            seen.append(self.batches - 1)

    fit_rows(epochs=3, callbacks=[Stop()], validation_data=ZEROS)
    assert seen == validated


def test_only_one_process_trains_with_a_snapshot(path):
    def run(**options):
        return fit_rows(epochs=1, snapshot_path=path, **options).epoch

    with lock_folder(path.parent, path.name):
        with pytest.raises(FolderInUseError, match="snapshot.npz is in use"):
            run()
        assert not path.exists()
        # another process of the same run
        assert run(writes_snapshots=False) == [0]
    # The lock of a run folder is a different one.
    with lock_folder(path.parent):
        assert run() == [0]
    assert path.exists() and run() == []


@pytest.mark.parametrize(
    "batches, received",
    [
        ((np.ones((4, 2)), np.ones((4, 1))), "a tuple"),
        (np.ones((4, 2)), "a ndarray"),
        (iter([]), "a list_iterator"),
    ],
)
def test_data_without_a_dataset_method_are_refused(batches, received):
    message = rf"`dataset\(start_step, stop_step\)`.*{received}.*`model.fit`"
    with pytest.raises(ValueError, match=message):
        fit(small_model(), batches, epochs=1, verbose=0)


def test_too_few_batches_raise_an_error():
    with (
        pytest.warns(UserWarning, match="ran out of data"),
        pytest.raises(ValueError, match=r"must give 8 batches. Received: 7"),
    ):
        fit_rows(Rows(missing=1), epochs=2)


class Listed(keras.utils.PyDataset):
    def __init__(self, batches):
        super().__init__()
        self.batches = list(batches)

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def test_batches_may_be_a_py_dataset():
    class ListedRows(Rows):
        def dataset(self, *steps):
            return Listed(super().dataset(*steps))

    models = small_model(), small_model()
    for model, rows in zip(models, (Rows(), ListedRows()), strict=True):
        model.set_weights([np.ones((1, 1)), np.zeros(1)])
        fit_rows(rows, model, epochs=2)
    assert_all_close(*(m.get_weights() for m in models), rtol=0)
    with pytest.raises(ValueError, match=r"must give 8 batches. Received: 7"):
        fit_rows(ListedRows(missing=1), model, epochs=2)
    assert model.optimizer.iterations == 8


class Ending:
    """Batches of a run that end early, with or without a known number."""

    steps_per_epoch = resume_run.STEPS

    def __init__(self, end, counted):
        self.batches, self.end = resume_run.Batches(), end
        self.counted = counted

    def dataset(self, start_step, stop_step):
        data = self.batches.dataset(start_step, min(stop_step, self.end))
        if self.counted or not hasattr(data, "filter"):
            return data
        return data.filter(lambda *_: True)  # Its length is unknown.


def end_early(monkeypatch, tmp_path, end, counted):
    with monkeypatch.context() as patch:
        data = Ending(end, counted)
        patch.setattr(resume_run, "Batches", lambda: data)
        with pytest.raises(ValueError, match=f"21 batches. Received: {end}; "):
            resume_run.train(tmp_path)


# in the first epoch, at its end, and in the second epoch
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("end", [5, 7, 12])
def test_data_ending_early_raise_before_the_epoch_is_saved(
    tmp_path, uninterrupted, monkeypatch, end
):
    end_early(monkeypatch, tmp_path, end, counted=False)
    saved = Snapshot.read(tmp_path / "snapshot.npz")
    assert saved.position == {5: 3, 7: 7, 12: 12}[end]
    # The log has no line of an unfinished epoch.
    assert (tmp_path / "log.jsonl").exists() == (end >= 7)
    check_same_results(resume_run.train(tmp_path), uninterrupted)


@pytest.mark.tensorflow
@pytest.mark.parametrize("end", [5, 7])
def test_data_known_to_end_early_raise_before_training(
    tmp_path, monkeypatch, end
):
    # Keras would start them again.
    end_early(monkeypatch, tmp_path, end, counted=True)
    assert not (tmp_path / "snapshot.npz").exists()


def test_runs_cannot_end_before_their_snapshot(path):
    """Otherwise weights of a later epoch would count as the last."""
    fit_rows(epochs=2, snapshot_path=path)
    assert fit_rows(epochs=2, snapshot_path=path).epoch == []
    with pytest.raises(ValueError, match="is 2 epochs.* at least 2.* epochs=1"):
        fit_rows(epochs=1, snapshot_path=path)
    snapshot = Snapshot.read(path)
    dataclasses.replace(snapshot, position=5).write(path)
    with pytest.raises(ValueError, match="1.25 epochs.* at least 2.* epochs=1"):
        fit_rows(epochs=1, snapshot_path=path)


def test_resumed_runs_need_the_same_number_of_steps_per_epoch(path):
    fit_rows(epochs=1, snapshot_path=path)
    with pytest.raises(ValueError, match="per_epoch=4, .* steps_per_epoch=5"):
        fit_rows(Rows(5), epochs=2, snapshot_path=path)
    assert fit_rows(epochs=2, snapshot_path=path).epoch == [1]


@SEVERAL_STEPS
def test_steps_per_execution_must_divide_the_epoch(path):
    model = small_model(steps_per_execution=3)
    with pytest.raises(ValueError, match="steps_per_execution=3"):
        fit_rows(model=model, epochs=1)
    model = small_model(steps_per_execution=2)
    with pytest.raises(KeyboardInterrupt):
        fit_rows(
            model=model,
            epochs=1,
            callbacks=[Kill(1, 3)],
            snapshot_path=path,
            snapshot_steps=1,
        )
    assert Snapshot.read(path).position == 2


@pytest.fixture
def saved(monkeypatch):
    """Record the positions of the snapshots that are written."""
    positions = []
    write = Snapshot.write

    def note(snapshot, path):
        positions.append(snapshot.position)
        write(snapshot, path)

    monkeypatch.setattr(Snapshot, "write", note)
    return positions


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "steps_per_execution, every, expected",
    [
        (1, 3, [3, 6, 8]),
        # Batch 3 ends within an execution of two steps.
        pytest.param(2, 3, [4, 6, 8], marks=SEVERAL_STEPS),
        pytest.param(2, 5, [6, 8], marks=SEVERAL_STEPS),
        pytest.param(4, 3, [4, 8], marks=SEVERAL_STEPS),
    ],
)
def test_snapshots_are_written_after_the_step_that_reaches_them(
    path, saved, steps_per_execution, every, expected
):
    """Save after every N batches, and at the end of the epoch."""
    model = small_model(steps_per_execution=steps_per_execution)
    fit_rows(Rows(8), model, epochs=1, snapshot_path=path, snapshot_steps=every)
    assert saved == expected


@pytest.mark.parametrize(
    "wrap", [lambda inner: inner, keras.optimizers.LossScaleOptimizer]
)
def test_averaged_weights_are_refused(wrap):
    optimizer = wrap(keras.optimizers.SGD(use_ema=True))
    with pytest.raises(ValueError, match=r"SGD\(use_ema=True"):
        fit_rows(model=small_model(optimizer), epochs=1)


def test_runs_stop_at_their_deadline(path, saved, capsys):
    stop = StopOnSignal(deadline=time.monotonic() + 3600)

    def set_deadline():
        stop.deadline = time.monotonic()

    callbacks = [call_after_batch(2, set_deadline), stop]
    history = fit_rows(epochs=2, callbacks=callbacks, snapshot_path=path)
    assert (saved, history.epoch, stop.stopping) == ([3], [], True)
    assert stop.received is None
    assert "Stopped after batch 3" in capsys.readouterr().out
    # Without a deadline the run continues.
    fit_rows(epochs=2, callbacks=[StopOnSignal()], snapshot_path=path)
    assert saved == [3, 4, 8]


@pytest.mark.parametrize("others", [[], [StopOnSignal()]])
def test_a_run_that_another_callback_stops_is_saved(path, saved, others):
    def stop():
        callback.model.stop_training = True

    callback = call_after_batch(2, stop)
    fit_rows(epochs=2, callbacks=[callback, *others], snapshot_path=path)
    assert saved == [3]
    assert [stop.stopping for stop in others] == [True] * len(others)


class TrainsBySelf(keras.Model):
    """Model without a compiled loss, whose training step adds up rows."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.rows = keras.metrics.Sum(name="rows")
        self.build((None, 1))

    def build(self, shape):
        self.dense.build(shape)
        self.built = True

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        self.rows.update_state(data[0])
        return {"rows": self.rows.result()}


@pytest.mark.tensorflow
def test_a_model_with_its_own_training_step_resumes(path):
    def run(callbacks=(), **options):
        model = TrainsBySelf()
        model.compile("sgd", jit_compile=False)
        return fit_rows(model=model, epochs=1, callbacks=callbacks, **options)

    run([StopOnSignal(deadline=0)], snapshot_path=path)
    assert run(snapshot_path=path).history == run().history != {}


def test_a_run_that_was_trained_says_so(path, capsys):
    fit_rows(epochs=2, snapshot_path=path)
    fit(small_model(), Rows(), epochs=2, snapshot_path=path)
    assert "already trained for 2 epochs" in capsys.readouterr().out


def test_a_snapshot_is_restored_only_into_a_built_model(path):
    fit_rows(epochs=1, snapshot_path=path)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    with pytest.raises(ValueError, match="Call it on a batch first"):
        fit_rows(model=model, epochs=2, snapshot_path=path)


class Records(keras.callbacks.Callback):
    """Callback with a state that JSON cannot hold."""

    def get_state(self):
        return {"loss": np.float32(1.0)}


def test_callbacks_that_a_snapshot_cannot_save_are_refused(path, monkeypatch):
    for callback, message in (
        (keras.callbacks.BackupAndRestore(path), "give `snapshot_path`"),
        (Records(), "Records.*float32 is not JSON serializable"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            fit_rows(epochs=1, callbacks=[callback], snapshot_path=path)
    monkeypatch.setattr(Records, "get_state", lambda self: {})
    with pytest.raises(TypeError, match="has no attribute 'set_state'"):
        fit_rows(epochs=1, callbacks=[Records()], snapshot_path=path)


@pytest.mark.tensorflow
def test_the_training_step_is_traced_once():
    model = small_model("adam")
    traces = []
    step = model.train_step

    def counted(data):
        traces.append(data)
        return step(data)

    model.train_step = counted
    fit_rows(model=model, epochs=2)
    assert len(traces) == 1


def test_models_may_be_built_by_their_first_batch():
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises(ValueError, match=r"call `compile\(\)`"):
        fit_rows(model=model, epochs=1)
    model.compile("adam", "mse", jit_compile=False)
    fit_rows(model=model, epochs=1)
    assert model.optimizer.iterations == 4
