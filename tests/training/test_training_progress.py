import contextlib
import dataclasses
import signal
import sys
import time

import keras
import numpy as np
import pytest

from luong_keras.training import training_progress
from luong_keras.training.fit import fit
from luong_keras.training.pace import Pace
from luong_keras.training.progress_line import (
    TrainingState,
    epoch_line,
    running_line,
)
from luong_keras.training.stop_on_signal import StopOnSignal
from luong_keras.training.training_progress import TrainingProgress
from tests.terminals import terminal

LONG = TrainingState(
    *(100, 100, 31_250, 31_250, 123.456, 1234.56, 123_456.0, 0.00390625),
    *(35_999, 863_999, 27.345),
)


def rows(count=4):
    class Rows:
        steps_per_epoch = count

        def dataset(self, start_step, stop_step):
            for _ in range(start_step, stop_step):
                yield np.ones((1, 2)), np.zeros((1, 1))

    return Rows()


def small_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


class Score(keras.callbacks.Callback):
    """Says what the validation of an epoch came to."""

    def __init__(self, *scores):
        super().__init__()
        self.scores = scores

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = self.scores[epoch]


def train(callbacks, epochs=2, **arguments):
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            if isinstance(callback, TrainingProgress):
                stack.enter_context(callback)
        return fit(
            small_model(),
            rows(),
            epochs=epochs,
            callbacks=callbacks,
            verbose=0,
            **arguments,
        )


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_the_line_fits_and_says_what_it_can(width):
    line, wording = running_line(LONG, width)
    assert len(line) <= width
    if width >= 80:
        parts = ("100/100", "31250/31250", "123k", "12", "0.0039", "9h59m")
        for part in (*parts, "9d23h", "BLEU 27"):
            assert part in line
    # A line that has changed its words keeps them.
    assert running_line(LONG, 1000, wording)[1] == wording


def test_what_is_not_known_is_not_said():
    state = TrainingState(1, 2, 0, 10)
    assert running_line(state, 80)[0] == "epoch 1/2, step 0/10"
    over = dataclasses.replace(state, seconds=3.0, loss=2.5, score=0.0)
    assert epoch_line(over, 80) == "epoch 1/2 in 0:03, loss 2.5, BLEU 0.00"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_an_epoch_that_is_over_fits(width):
    state = dataclasses.replace(
        LONG, score=27.3, validation=1234.5, seconds=35_999.0
    )
    line = epoch_line(state, width)
    assert len(line) <= width and line.startswith("epoch 100/100 in 9h59m")


def test_the_pace_is_that_of_the_last_minute_without_pauses():
    pace = Pace()
    for step in range(1, 200):
        pace.add(2.0 * step, step, 50.0 * step)
    for step in range(200, 400):
        pace.add(400 + 0.5 * (step - 200), step, 50.0 * step)
    assert pace.seconds_a_step == pytest.approx(0.5)
    assert pace.tokens_a_second == pytest.approx(100)
    pace.pause()
    pace.add(10_000.0, 1, 50.0)
    assert pace.seconds_a_step == pytest.approx(0.5)
    pace.add(10_003.0, 2, 350.0)
    assert pace.seconds_a_step == pytest.approx(3)
    assert pace.tokens_a_second == pytest.approx(100)


def test_a_file_has_a_line_an_epoch(capsys):
    train([Score(20.0, 10.0), TrainingProgress()])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/2 in 0:0")
    assert "BLEU 20.00" in first and "best" not in first
    assert "BLEU 10.00, best 20.00" in second and "rate 0.01" in second


def test_a_file_has_lines_within_long_epochs(capsys, monkeypatch):
    monkeypatch.setattr(training_progress, "_SECONDS_A_LINE", 0.0)
    train([TrainingProgress()], epochs=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:19] for line in lines[:-1]] == [
        f"epoch 1/1, step {step}/4" for step in (1, 2, 3)
    ]


def test_a_terminal_has_one_line_that_is_redrawn(monkeypatch):
    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.2)

    with terminal(monkeypatch, 80) as seen:
        train([Slow(), Score(20.0, 30.0), TrainingProgress()])
    lines = seen.left()
    assert [line[:9] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    drawn = [line for line in seen.shown() if line not in lines]
    assert max(map(len, drawn)) <= 80
    assert any("step 2/4" in line and "loss" in line for line in drawn)
    second = [line for line in drawn if line.startswith("epoch 2/2")]
    assert second and all("BLEU 20.00" in line for line in second)
    assert any("run 0:0" in line for line in drawn)
    assert seen.cursor_is_shown()


@pytest.mark.parametrize("columns, term", [(59, "xterm"), (80, "dumb")])
def test_a_terminal_that_cannot_redraw_is_a_file(monkeypatch, columns, term):
    with terminal(monkeypatch, columns, term) as seen:
        train([TrainingProgress()])
    assert "\x1b" not in seen.text
    assert [line[:9] for line in seen.left()] == ["epoch 1/2", "epoch 2/2"]


def test_an_error_leaves_the_terminal_as_it_was(monkeypatch):
    class Broken(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.3)
            raise ArithmeticError

    with terminal(monkeypatch) as seen:
        before = sys.stdout
        with pytest.raises(ArithmeticError):
            train([Broken(), TrainingProgress()])
        assert sys.stdout is before
        print("afterwards")
    assert seen.left() == ["afterwards"] and seen.cursor_is_shown()


def test_a_stopped_run_goes_on_in_its_epoch_and_step(
    monkeypatch, tmp_path, capsys
):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(training_progress, "_SECONDS_A_LINE", 0.0)
    path = tmp_path / "snapshot.npz"
    first = [Interrupt(), TrainingProgress(), StopOnSignal()]
    with terminal(monkeypatch) as seen:
        train(first, snapshot_path=path)
        print("the prompt")
    assert seen.left()[-1] == "the prompt" and seen.cursor_is_shown()
    assert any(line.startswith("Stopped after batch 2") for line in seen.left())
    monkeypatch.setattr(training_progress, "_SECONDS_A_LINE", 0.0)
    capsys.readouterr()
    assert first[1].steps_done == 2
    again = TrainingProgress(best=20.0)
    train([again], snapshot_path=path)
    assert again.steps_done == 6
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch 1/2, step 3/4")
    assert lines[0].endswith("best BLEU 20.00")
    assert [line[:12] for line in lines[1:]] == [
        "epoch 1/2 in",
        "epoch 2/2, s",
        "epoch 2/2, s",
        "epoch 2/2, s",
        "epoch 2/2 in",
    ]


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras on torch makes one step an execution",
)
def test_several_steps_of_one_execution_count_as_such(capsys, monkeypatch):
    monkeypatch.setattr(training_progress, "_SECONDS_A_LINE", 0.0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False, steps_per_execution=2)
    with TrainingProgress() as progress:
        fit(model, rows(), epochs=1, callbacks=[progress], verbose=0)
    first, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/1, step 2/4")
