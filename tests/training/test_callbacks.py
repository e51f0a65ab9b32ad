import json
import math
import re
import signal
import time
import types

import keras
import numpy as np
import pytest

from luong_keras.training.epoch_logs import (
    JsonLinesLog,
    TokensPerSecond,
    TranslationValidation,
)
from luong_keras.training.interruption import SnapshotCallback, StopOnSignal
from luong_keras.training.monitoring import (
    ReduceOnPlateau,
    StopOnNonFinite,
    StopOnPlateau,
)
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.weight_callbacks import BestWeights, EpochWeights
from tests.layer_checks import small_model


def exact_match(translations, references):
    return 100 * np.mean(np.array(translations) == np.array(references))


def make_validation(sources, references, translate=list, **options):
    return TranslationValidation(
        translate, sources, references, exact_match, **options
    )


def test_later_callbacks_see_the_validation_score(tmp_path):
    model = small_model()
    kernels = []

    def translate(lines):
        # The model has the trained weights here, on JAX too.
        kernels.append(float(model.layers[0].kernel[0, 0]))
        return [line if len(kernels) == 2 else "?" for line in lines]

    folder = tmp_path / "samples"
    validation = make_validation(
        ["a", "b"], ["a", "c"], translate, output_folder=folder
    )
    best = BestWeights(tmp_path / "best.weights.h5")
    log = JsonLinesLog(tmp_path / "log.jsonl")
    callbacks = [validation, best, log]
    x = np.ones((3, 1))
    history = model.fit(x, x, epochs=3, callbacks=callbacks, verbose=0)
    assert history.history["val_bleu"] == [0, 50, 0]
    assert [line["val_bleu"] for line in log.read()] == [0, 50, 0]
    assert len(set(kernels)) == 3
    assert (folder / "epoch-002.txt").read_text() == "a\nb\n"
    # The second epoch is the best.
    model.load_weights(best.path)
    assert float(model.layers[0].kernel[0, 0]) == kernels[1]
    assert best.best == 50


def test_samples_are_spread_over_the_validation_set(capsys):
    lines = [f"line {index}" for index in range(10)]
    make_validation(lines, lines, samples=2).on_epoch_end(0, {})
    printed = capsys.readouterr().out
    assert re.findall(r"\n  source +(.*)", printed) == ["line 0", "line 5"]


def test_long_samples_are_shortened_on_the_screen_only(tmp_path, capsys):
    article = "word " * 900 + "end"
    validation = make_validation([article], ["short"], output_folder=tmp_path)
    validation.on_epoch_end(0)
    source, reference, translation = capsys.readouterr().out.splitlines()[-3:]
    assert source == f"  source       {article[:299]}…"
    assert reference == "  reference    short"
    assert translation == f"  translation  {article[:299]}…"
    assert (tmp_path / "epoch-001.txt").read_text() == f"{article}\n"


def test_validation_needs_one_reference_per_source():
    with pytest.raises(ValueError, match="2 sources, 1 references"):
        make_validation(["a", "b"], ["a"])
    short = make_validation(["a"], ["a"], lambda lines: [])
    with pytest.raises(ValueError, match="0 for 1 sources"):
        short.on_epoch_end(0, {})


def test_validation_applies_agree_to_the_score():
    logs = {}
    validation = make_validation(
        ["a"], ["a"], samples=0, agree=lambda score: score / 4
    )
    validation.on_epoch_end(0, logs)
    assert logs == {"val_bleu": 25.0}


@pytest.mark.parametrize("mode, sign", [("max", 1), ("min", -1)])
def test_best_weights_are_never_those_of_nan(tmp_path, mode, sign):
    best = BestWeights(tmp_path / "best.weights.h5", "value", mode)
    best.set_model(small_model())
    best.on_epoch_end(0, {"value": math.nan})
    assert best.best is None and not best.path.exists()
    for value in (-2.0, math.nan, -3.0):  # the first is the best
        best.on_epoch_end(1, {"value": sign * value})
        assert best.best == sign * -2.0
    assert best.path.exists()
    resumed = BestWeights(tmp_path / "resumed.weights.h5", "value", mode)
    resumed.set_state({"best": best.best})
    resumed.set_model(small_model())
    for value in (-3.0, -2.0, math.nan, -1.0):
        assert not resumed.path.exists()
        resumed.on_epoch_end(0, {"value": sign * value})
    assert resumed.path.exists()


EPOCHS = [(0, math.nan), (0, 4.0), (0, 4.5), (0, 4.0)]
EPOCHS += [(2, 9.0), (2, 8.0), (1, 1.0)]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("mode, sign", [("max", 1), ("min", -1)])
@pytest.mark.parametrize("stop", [None, 2, 4, 5])
def test_ties_are_decided_by_the_lower_loss(tmp_path, mode, sign, stop):
    """Decide ties by the loss, also after states are restored from JSON."""

    def make():
        made = [
            BestWeights(tmp_path / "best.weights.h5", "value", mode),
            StopOnPlateau(None, "value", mode),
            ReduceOnPlateau("value", mode, 0.5, patience=1),
        ]
        for callback in made:
            callback.set_model(model)
        return made

    model = small_model()
    model.optimizer.learning_rate = 1.0
    callbacks = make()
    seen = []
    for epoch, (value, loss) in enumerate(EPOCHS):
        if epoch == stop:
            states = json.dumps([c.get_state() for c in callbacks])
            callbacks = make()
            for callback, state in zip(
                callbacks, json.loads(states), strict=True
            ):
                callback.set_state(state)
        model.set_weights([np.full((1, 1), float(epoch)), np.zeros(1)])
        logs = {"value": sign * float(value), "val_loss": loss}
        if mode == "min":  # Exact perplexities precede the mean of batches.
            logs |= {"val_word_perplexity": loss, "val_loss": -loss}
        for callback in callbacks:
            callback.on_epoch_end(epoch, logs)
        kept = small_model()
        kept.load_weights(tmp_path / "best.weights.h5")
        best = int(kept.layers[0].kernel[0, 0])
        rate = float(model.optimizer.learning_rate)
        seen.append((best, callbacks[1].waited, rate))
    assert seen == [
        (0, 0, 1),
        (1, 0, 1),
        (1, 1, 1),
        (1, 2, 0.5),
        (4, 0, 0.5),
        (5, 0, 0.5),
        (5, 1, 0.5),
    ]


@pytest.mark.parametrize(
    "scores, losses, reported",
    [
        ([0, 0, 0, 0], [4, 3, 2, 1], [3, 4]),
        ([0, 0, 0], [4, 3, 2], [3]),
        ([0, 0], [4, 3], [2]),
        ([0, 0, 0, 0], [4, 3, 2, 9], [3, 4]),
        ([0, 0, 0, 1], [4, 3, 2, 1], [3]),
        ([0, 0, 0, 0], [4, 5, 6, 7], []),
        ([0, 1, 0, 0], [4, 3, 2, 1], []),
        ([5, 5, 5, 5], [4, 3, 2, 1], []),
        ([math.nan] * 4, [4, 3, 2, 1], [3, 4]),
        ([math.nan, 5, math.nan, 5], [4, 3, 2, 1], []),
    ],
)
@pytest.mark.parametrize("stop", [None, 3])
def test_scores_that_stay_0_or_nan_are_reported(
    tmp_path, capsys, scores, losses, reported, stop
):
    best = BestWeights(tmp_path / "best.weights.h5")
    best.set_model(small_model())
    for epoch, (score, loss) in enumerate(zip(scores, losses, strict=True)):
        if epoch == stop:
            state = best.get_state()
            best = BestWeights(tmp_path / "best.weights.h5")
            best.set_model(small_model())
            best.set_state(state)
        best.on_epoch_end(epoch, {"val_bleu": score, "val_loss": loss})
    best.on_train_end()
    printed = capsys.readouterr().out
    found = re.findall(r"val_bleu has been \w+ in all (\d) epochs", printed)
    assert [int(number) for number in found] == reported


def test_best_weights_of_another_model_that_shares_layers(tmp_path):
    shown = small_model()
    trained = keras.Sequential([shown, keras.layers.Dense(1)])
    trained.compile("sgd", "mse", jit_compile=False)
    best = BestWeights(tmp_path / "b.weights.h5", "loss", "min", model=shown)
    x = np.ones((2, 1))
    trained.fit(x, x, callbacks=[best], verbose=0)
    other = small_model()
    other.load_weights(best.path)
    np.testing.assert_array_equal(
        other.layers[0].kernel, shown.layers[0].kernel
    )


@pytest.mark.parametrize(
    "make, wrong",
    [
        (LearningRateHalving, {"first_halved_epoch": 0}),
        (LearningRateHalving, {"halvings_per_epoch": 0}),
        (LearningRateHalving, {"initial_rate": -1.0}),
        (LearningRateHalving, {"steps_per_epoch": 0}),
        (LearningRateHalving, {"factor": -1.0}),
        (LearningRateHalving.after_epoch, {"finetune_epoch": -5}),
        (LearningRateHalving.after_epoch, {"epoch_fraction": 0}),
        (LearningRateHalving.after_epoch, {"factor": 2.0}),
        (LearningRateHalving.by_iteration, {"iterations_per_epoch": 0}),
        (LearningRateHalving.by_iteration, {"finetune_epoch": 1.5}),
        (LearningRateHalving.by_iteration, {"epoch_fraction": -1}),
        (LearningRateHalving.by_iteration, {"factor": -1.0}),
        (ReduceOnPlateau, {"patience": -3}),
        (ReduceOnPlateau, {"min_delta": -0.1}),
        (ReduceOnPlateau, {"min_rate": -1}),
        (ReduceOnPlateau, {"factor": 1.0}),
        (ReduceOnPlateau, {"factor": 10}),
        (ReduceOnPlateau, {"factor": -0.5}),
        (ReduceOnPlateau, {"mode": "auto"}),
        (BestWeights, {"path": "best.h5"}),
        (BestWeights, {"mode": "auto"}),
        (EpochWeights, {"keep": -1}),
        (StopOnPlateau, {"patience": 0}),
        (StopOnSignal, {"agree_every": 0}),
        (StopOnNonFinite, {"every_steps": 0}),
        (StopOnNonFinite, {"every_steps": 2.5}),
        (SnapshotCallback, {"every_steps": 0}),
    ],
)
def test_arguments_out_of_range_are_refused(make, wrong):
    needed = {
        LearningRateHalving.by_iteration: {"iterations_per_epoch": 5},
        BestWeights: {"path": "best.weights.h5"},
        EpochWeights: {"folder": "checkpoints"},
        SnapshotCallback: {"path": "snapshot.npz"},
    }
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        make(**{**needed.get(make, {}), **wrong})


@pytest.mark.parametrize(
    "callback", [BestWeights("a.weights.h5"), StopOnPlateau()]
)
def test_logs_without_the_value_are_refused(callback):
    with pytest.raises(ValueError, match=r"'val_bleu'.*Received: \['loss'\]"):
        callback.on_epoch_end(0, {"loss": 1.0})


def test_tokens_per_second_excludes_validation(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def epoch(speed, seconds):
        for _ in range(2):
            now[0] += seconds / 2
            speed.on_train_batch_end(0)
        now[0] += 1000  # validation

    speed = TokensPerSecond()
    speed.on_epoch_begin(0)
    epoch(speed, 2.0)
    logs = {"losses_words": 100.0, "val_words": 7.0}
    speed.on_epoch_end(0, logs)
    assert logs["tokens_per_second"] == 50.0
    speed.on_epoch_begin(1)
    epoch(speed, 1.0)
    # interrupted here: the other batches take three seconds
    resumed = TokensPerSecond()
    resumed.set_state(speed.get_state())
    resumed.on_epoch_begin(1)
    epoch(resumed, 3.0)
    logs = {"words": 100.0}
    resumed.on_epoch_end(1, logs)
    assert logs["tokens_per_second"] == 25.0
    assert resumed.get_state() == {"seconds": 0.0}


def test_the_time_of_an_epoch_includes_the_work_of_its_last_batch(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Pending(float):
        def __float__(self):  # The seconds that the device takes.
            now[0] += self.real
            return 100.0

    speed = TokensPerSecond()
    speed.set_params({"steps": 2})
    speed.on_epoch_begin(0)
    for batch, seconds in enumerate((5, 1)):  # waits for the last one only
        speed.on_train_batch_end(batch, {"words": Pending(seconds)})
    logs = {"words": 100.0}
    speed.on_epoch_end(0, logs)
    assert logs["tokens_per_second"] == 100.0


def test_a_count_is_found_by_its_full_name_first():
    logs = {"decoder_words": 1.0, "words": 6.0, "val_words": 7.0}
    speed = TokensPerSecond()
    speed.set_state({"seconds": 2.0})
    speed.on_epoch_end(0, logs)
    assert logs["tokens_per_second"] == 3.0


def test_an_epoch_without_time_has_no_speed():
    speed, logs = TokensPerSecond(), {"words": 100.0}
    speed.on_epoch_end(0, logs)
    assert logs == {"words": 100.0}


def test_tokens_per_second_needs_a_token_count():
    speed = TokensPerSecond()
    speed.set_state({"seconds": 1.0})
    with pytest.raises(ValueError, match="TokenCount"):
        speed.on_epoch_end(0, {"loss": 1.0})


def test_logs_have_one_line_per_epoch_with_null_for_nan(tmp_path):
    log = JsonLinesLog(tmp_path / "log.jsonl")
    log.on_epoch_end(0, {"loss": np.float32("nan"), "bleu": float("inf")})
    log.on_epoch_end(1, {"loss": 9.0})
    JsonLinesLog(log.path).on_epoch_end(1, {"loss": np.float32(0.5)})

    def refuse(name):
        raise AssertionError(name)

    lines = [
        json.loads(line, parse_constant=refuse)
        for line in log.path.read_text().splitlines()
    ]
    assert lines == log.read()
    assert lines[0] == {"epoch": 1, "loss": None, "bleu": None}
    assert lines[1:] == [{"epoch": 2, "loss": 0.5}]


@pytest.mark.parametrize("cut", [1, 5, 14, 19])
def test_an_incomplete_last_line_is_replaced(tmp_path, cut):
    log = JsonLinesLog(tmp_path / "log.jsonl")
    log.on_epoch_end(0, {"loss": 2.0})
    whole = log.path.read_bytes()
    log.on_epoch_end(1, {"loss": 1.0})
    log.path.write_bytes(log.path.read_bytes()[: len(whole) + cut])
    assert log.read() == [{"epoch": 1, "loss": 2.0}]
    log.on_epoch_end(1, {"loss": 1.5})
    assert [line["loss"] for line in log.read()] == [2.0, 1.5]


@pytest.mark.parametrize("line", ["", "half", "[]", "{}", '{"epoch": "1"}'])
def test_errors_of_damaged_log_lines_name_the_line(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"epoch": 1}}\n{line}\n{{"epoch": 3}}\n')
    with pytest.raises(ValueError, match=r"log\.jsonl, line 2"):
        JsonLinesLog(path).read()


def running_stop(steps_per_execution=1, **options):
    """Return a `StopOnSignal` of a running model."""
    stop = StopOnSignal(**options)
    model = types.SimpleNamespace(steps_per_execution=steps_per_execution)
    model.stop_training = False
    stop.set_model(model)
    return stop


def test_processes_stop_after_the_same_batch():
    calls = []

    def agree(stopping):
        calls.append(stopping)
        return len(calls) == 3  # The other process must stop.

    stop = running_stop(agree=agree, agree_every=4)
    for batch in range(11):
        stop.on_train_batch_end(batch)
    assert calls == [False, False] and not stop.stopping
    stop.received = signal.SIGTERM  # The other process continues.
    assert not stop.stopping and not stop.model.stop_training
    stop.on_train_batch_end(11)
    assert calls == [False, False, True]
    assert stop.stopping and stop.model.stop_training


def test_processes_agree_where_a_step_has_several_batches():
    """Agree every tenth batch, after the step of three batches with it."""
    calls = []
    stop = running_stop(3, agree=calls.append, agree_every=10)
    for _ in range(2):  # epochs
        for batch in range(2, 60, 3):
            stop.on_train_batch_end(batch)
    assert len(calls) == 12


def test_the_next_fit_forgets_why_the_last_one_stopped():
    stop = running_stop(signals=(), agree=lambda stopping: True, agree_every=1)
    stop.on_train_batch_end(0)
    stop.received = signal.SIGTERM
    assert stop.stopping
    stop.on_train_begin()
    stop.restore_handlers()
    assert not stop.stopping and stop.received is None


def test_processes_agree_after_an_epoch():
    stop = running_stop(deadline=0, agree=lambda stopping: stopping)
    assert not stop.stopping
    stop.on_epoch_end(0)
    assert stop.stopping and stop.model.stop_training
