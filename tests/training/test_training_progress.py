import contextlib
import signal
import sys
import time

import keras
import numpy as np
import pytest

from luong_keras.training import training_progress
from luong_keras.training.epoch_logs import TokensPerSecond
from luong_keras.training.fit import fit
from luong_keras.training.interruption import StopOnSignal
from luong_keras.training.metrics import TokenCount
from luong_keras.training.training_progress import TrainingProgress
from tests.layer_checks import small_model
from tests.terminals import terminal
from tests.training.fit_helpers import SEVERAL_STEPS, Rows, call_after_batch


@pytest.fixture
def line_per_step():
    # `monkeypatch` is undone where a test closes its terminal.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_progress, "_SECONDS_A_LINE", 0.0)
        yield


class Score(keras.callbacks.Callback):
    """Callback that sets the validation score of each epoch."""

    def __init__(self, *scores):
        super().__init__()
        self.scores = scores

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = self.scores[epoch]


def train(callbacks, epochs=2, model=None, **arguments):
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            if isinstance(callback, TrainingProgress):
                stack.enter_context(callback)
        fit(
            model or small_model(),
            Rows(),
            epochs=epochs,
            callbacks=callbacks,
            verbose=0,
            **arguments,
        )


def test_remaining_times_exclude_compilation(monkeypatch):
    # Epochs have four steps. The first step compiles and takes 10 s, each
    # other step 2 s; 5 s pass between epochs.
    now = [0.0]
    monkeypatch.setattr(training_progress.time, "monotonic", lambda: now[0])
    progress = TrainingProgress(count="count")
    progress.best = 20.0
    progress.set_params({"epochs": 3, "steps": 4})
    progress.set_model(small_model())
    progress.on_epoch_begin(0)
    assert progress._format_line() == (
        "epoch 1/3, step 0/4, compiling, best BLEU 20.00"
    )
    for step, seconds in enumerate((10.0, 2.0, 2.0, 2.0)):
        now[0] += seconds
        logs = {"loss": 2.5, "word_perplexity": 12.0, "count": 100.0 * step}
        progress.on_train_batch_end(step, logs)
    now[0] += 5.0
    progress.on_epoch_begin(1)
    for step in range(2):
        now[0] += 2.0
        progress.on_train_batch_end(step, {"loss": 2.0, "count": 100.0 * step})
    # left: two steps of this epoch, four of the next, and two pauses
    assert progress._format_line() == (
        "epoch 2/3, step 2/4, 0:04 left, 0:22 to the end, loss 2, best BLEU "
        "20.00, 50 tokens/s, learning rate 0.01"
    )
    progress._display.close()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("mode, best", [("max", "30.00"), ("min", "5.00")])
def test_resumed_runs_show_the_best_score(path, capsys, mode, best):
    scores = Score(20.0, 30.0, float("nan"), 5.0, 10.0)
    for epochs in (4, 5):
        progress = TrainingProgress(mode=mode)
        train([scores, progress], epochs, snapshot_path=path)
    line = capsys.readouterr().out.splitlines()[-1]
    assert f"BLEU 10.00, best {best}," in line


def test_small_scores_have_four_significant_digits(capsys):
    train([Score(0.012345, 0.011), TrainingProgress(title="F")])
    first, second = capsys.readouterr().out.splitlines()
    assert "F 0.01235" in first and "F 0.011, best 0.01235," in second


def test_files_have_one_line_per_epoch(capsys):
    train([Score(20.0, 10.0), TrainingProgress()])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/2 in 0:0")
    assert "BLEU 20.00" in first and "best" not in first
    assert "BLEU 10.00, best 20.00" in second and "rate 0.01" in second


def test_scores_named_after_a_perplexity_are_not_shown_as_one(capsys):
    class Logs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs.update(word_perplexity=5.0, val_word_perplexity=6.0)
            logs["val_lm_perplexity"] = 99.0

    train([Logs(), TrainingProgress("val_lm_perplexity", title="LM")], 1)
    line = capsys.readouterr().out
    assert "perplexity 5, validation 6, LM 99.00," in line


def test_files_have_more_lines_in_long_epochs(capsys, line_per_step):
    train([TrainingProgress()], epochs=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:19] for line in lines[:-1]] == [
        f"epoch 1/1, step {step}/4" for step in (1, 2, 3)
    ]


def test_tokens_are_counted_by_the_default_name_of_the_metric(
    capsys, line_per_step
):
    model = small_model(metrics=[TokenCount()])
    with TrainingProgress() as progress:
        model.fit(
            np.ones((8, 1)),
            np.ones((8, 1)),
            batch_size=2,
            callbacks=[TokensPerSecond(), progress],
            verbose=0,
        )
    lines = capsys.readouterr().out.splitlines()
    assert ["tokens/s" in line for line in lines] == [False, True, True, True]


@pytest.mark.slow
def test_terminals_redraw_one_line(monkeypatch):
    slow = keras.callbacks.LambdaCallback(
        # The line is redrawn every 0.25 s.
        on_train_batch_end=lambda batch, logs: time.sleep(0.5)
    )
    with terminal(monkeypatch, 80) as seen:
        train([slow, Score(20.0, 30.0), TrainingProgress()])
    lines = seen.left()
    assert [line[:9] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    drawn = [line for line in seen.shown() if line not in lines]
    assert max(map(len, drawn)) <= 80
    assert any("step 2/4" in line and "loss" in line for line in drawn)
    second = [line for line in drawn if line.startswith("epoch 2/2")]
    assert second and all("BLEU 20.00" in line for line in second)
    assert any("left, 0:0" in line for line in drawn)
    assert seen.cursor_is_shown()


@pytest.mark.parametrize("columns, term", [(59, "xterm"), (80, "dumb")])
def test_terminals_that_cannot_redraw_are_used_as_files(
    monkeypatch, columns, term
):
    with terminal(monkeypatch, columns, term) as seen:
        train([TrainingProgress()])
    assert "\x1b" not in seen.text
    assert [line[:9] for line in seen.left()] == ["epoch 1/2", "epoch 2/2"]


def test_errors_restore_the_terminal(monkeypatch):
    def fail():
        time.sleep(0.3)
        raise ArithmeticError

    with terminal(monkeypatch) as seen:
        before = sys.stdout
        with pytest.raises(ArithmeticError):
            train([call_after_batch(0, fail), TrainingProgress()])
        assert sys.stdout is before
        print("afterwards")
    assert seen.left() == ["afterwards"] and seen.cursor_is_shown()


def test_resumed_runs_show_their_epoch_and_step(
    monkeypatch, path, capsys, line_per_step
):
    def interrupt():
        signal.raise_signal(signal.SIGTERM)

    first = TrainingProgress()
    first.best = 20.0
    with terminal(monkeypatch) as seen:
        callbacks = [call_after_batch(1, interrupt), first, StopOnSignal()]
        train(callbacks, snapshot_path=path)
        print("the prompt")
    assert seen.left()[-1] == "the prompt" and seen.cursor_is_shown()
    assert any(line.startswith("Stopped after batch 2") for line in seen.left())
    capsys.readouterr()
    assert first.steps_done == 2
    again = TrainingProgress()
    train([again], snapshot_path=path)
    assert again.steps_done == 6
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch 1/2, step 3/4")
    assert "best BLEU 20.00" in lines[0]
    assert [line[:12] for line in lines[1:]] == [
        "epoch 1/2 in",
        "epoch 2/2, s",
        "epoch 2/2, s",
        "epoch 2/2, s",
        "epoch 2/2 in",
    ]


@SEVERAL_STEPS
def test_steps_are_counted_with_several_per_execution(capsys, line_per_step):
    train([TrainingProgress()], 1, small_model(steps_per_execution=2))
    first, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/1, step 2/4")
