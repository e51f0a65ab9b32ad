import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, override
from luong_keras.recipe import resumption
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.resumption import (
    MAY_CHANGE,
    describe_machine,
    is_finished,
    mark_finished,
    print_epochs,
    record_session,
    resumed_settings,
)
from luong_keras.recipe.stored_settings import copy_word_lists
from luong_keras.training.run_folder import RunFolder


@pytest.fixture
def run(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config(config_to_dict(RunConfig()))
    return run


def write_log(run, epochs):
    lines = [json.dumps({"epoch": e + 1, "loss": 1.0}) for e in range(epochs)]
    run.log.write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize(
    "assignment",
    [
        "training.epochs=20",
        "training.gradient_accumulation_steps=2",
        "training.parallel_microbatches=2",
        "training.snapshot_steps=7",
        "data.max_skipped=0.5",
        "data.processes=2",
        "training.samples=1",
        "training.keep=3",
        "training.patience=4",
        "training.final_weights=last",
        "decoding.beam_size=3",
        "decoding.max_source_length=50",
        # The text determined the vocabulary size.
        "model.source_vocabulary_size=70000",
    ],
)
def test_settings_that_may_change_are_accepted(run, assignment):
    resumed_settings(override(RunConfig(), [assignment]), run)


@pytest.mark.parametrize(
    "assignments, message",
    [
        ("first_halved_epoch=5", ""),
        ("first_halved_epoch=6", "stays 1: .* from epoch 6 on .* of 5"),
        ("first_halved_epoch=5 halving=after_epoch", "1: .* after epoch 5 "),
        ("first_halved_epoch=5 halving=after_epoch halvings_per_epoch=2", ""),
        ("first_halved_epoch=6 halving=plateau", ""),
    ],
)
def test_learning_rates_that_are_never_halved_are_reported(
    tmp_path, assignments, message, capsys
):
    changes = [f"training.{a}" for a in ("epochs=5", *assignments.split())]
    config = override(RunConfig(), changes)
    print_epochs(config, RunFolder(tmp_path))
    printed = capsys.readouterr().out
    assert bool(printed) == bool(message) and re.search(message, printed)


def test_resumed_runs_report_the_finished_epochs(run, capsys):
    print_epochs(RunConfig(), run)
    assert "continues" not in capsys.readouterr().out
    run.snapshot.touch()
    write_log(run, 3)
    print_epochs(RunConfig(), run)
    assert "; 3 of 12 epochs are done" in capsys.readouterr().out


@pytest.mark.parametrize(
    "assignment, message",
    [
        ("training.batch_size=64", "training.batch_size: 128 → 64"),
        ("training.seed=2", "training.seed: 1 → 2"),
        ("model.attention.half_width=5", "model.attention.half_width: 10 → 5"),
        ("data.train_size=9", "data.train_size: None → 9"),
        ("model.precision=float64", "model.precision: 'float32' → 'float64'"),
    ],
)
def test_errors_name_the_setting_that_may_not_change(run, assignment, message):
    before = run.config.read_text()
    with pytest.raises(ValueError) as caught:
        resumed_settings(override(RunConfig(), [assignment]), run)
    assert message in str(caught.value)
    assert "use a new folder" in str(caught.value)
    assert run.config.read_text() == before


def test_errors_list_all_differences(run):
    changed = ["training.batch_size=64", "training.epochs=20", "model.units=8"]
    with pytest.raises(ValueError) as caught:
        resumed_settings(override(RunConfig(), changed), run)
    rule, _, differences = str(caught.value).partition("different one: ")
    assert f"{str(run.config)!r} except for training.epochs, " in rule
    expected = "model.units: 1000 → 8; training.batch_size: 128"
    assert differences.startswith(expected) and "epochs" not in differences


def test_epochs_cannot_be_fewer_than_trained(run):
    write_log(run, 5)
    resumed_settings(override(RunConfig(), ["training.epochs=5"]), run)
    with pytest.raises(ValueError, match="trained for 5 .* Received: 4"):
        resumed_settings(override(RunConfig(), ["training.epochs=4"]), run)


def test_older_runs_have_the_defaults_of_newer_settings(run):
    values = config_to_dict(RunConfig())
    del values["data"]["batching"], values["model"]["attention"]["use_scale"]
    run.write_config(values)
    resumed_settings(RunConfig(), run)
    changed = override(RunConfig(), ["data.batching=authors"])
    with pytest.raises(ValueError, match="data.batching: 'sorted_pools' →"):
        resumed_settings(changed, run)


@pytest.mark.parametrize(
    "size, accepted, parent",
    [
        (8000, True, None),
        (50000, True, None),
        (9, False, None),
        # The run has learnt none.
        (50000, True, "runs/base"),
        (9, False, "runs/base"),
    ],
)
def test_other_sizes_than_requested_are_refused(run, size, accepted, parent):
    """The vocabularies of 50,000 words were learnt for 8,000 or fewer."""
    config = override(RunConfig(), [f"init_from={parent}"])
    run.write_config(config_to_dict(config))
    if parent is None:
        run.corpus.mkdir()
        origin = ["fingerprint", [8000, 8000], {}]
        (run.corpus / "vocabularies.json").write_text(json.dumps(origin))
    names = ("source_vocabulary_size", "target_vocabulary_size")
    changed = override(config, [f"model.{name}={size}" for name in names])
    if accepted:
        assert resumed_settings(changed, run) == config
    else:
        with pytest.raises(ValueError, match="vocabulary_size: 50000 → 9"):
            resumed_settings(changed, run)


def test_moved_runs_keep_their_own_pairs(run, tmp_path):
    run.pairs.mkdir()
    for name in ("train.1.jsonl", "train.2.jsonl", "dev.jsonl"):
        (run.pairs / name).touch()

    def config_in(folder, dev="pairs/dev.jsonl"):
        trains = ",".join(f"{folder}/pairs/train.{i}.jsonl" for i in (1, 2))
        paths = [f"data.train=[{trains}]", f"data.dev={folder}/{dev}"]
        return override(RunConfig(), ["data.dataset=files", *paths])

    run.write_config(config_to_dict(config_in("before")))
    resumed_settings(config_in(tmp_path / "after"), run)
    for other in ("pairs/else.jsonl", "dev.jsonl"):
        with pytest.raises(ValueError, match="data.dev: 'before/pairs/dev"):
            resumed_settings(config_in("x", other), run)


def test_runs_are_finished_only_for_the_settings_of_the_scores(run):
    config = RunConfig()
    assert not is_finished(config, run)
    mark_finished(config, run)
    assert is_finished(config, run)
    for assignment in ("training.epochs=13", "decoding.length_penalty=0.5"):
        assert not is_finished(override(config, [assignment]), run)
    for assignment in ("training.samples=9", "training.patience=3"):
        assert is_finished(override(config, [assignment]), run)
    last = override(config, ["training.final_weights=last"])
    assert not is_finished(last, run)
    mark_finished(last, run)
    assert is_finished(last, run)
    write_log(run, 5)
    assert not is_finished(last, run)
    mark_finished(last, run)
    assert is_finished(last, run)
    run.finished.write_text("{}")  # without the epochs
    assert not is_finished(last, run)


@pytest.mark.parametrize("name", ["dictionary", "shortlist"])
def test_runs_with_another_word_list_are_not_finished(run, tmp_path, name):
    def config_with(line):
        path = tmp_path / "list.txt"
        path.write_text(f"{line} 0.5\n")
        config = override(RunConfig(), [f"decoding.{name}={path}"])
        return copy_word_lists(config, run)

    mark_finished(config_with("Haus house"), run)
    assert is_finished(config_with("Haus house"), run)
    # Its copy has the same name.
    assert not is_finished(config_with("Haus home"), run)
    record = json.loads(run.finished.read_text())
    del record["word_lists"]  # as an earlier version wrote it
    run.finished.write_text(json.dumps(record))
    assert is_finished(config_with("Haus home"), run)


def test_changeable_settings_exist():
    settings = config_to_dict(RunConfig())
    for name in MAY_CHANGE:
        section, _, setting = name.partition(".")
        assert section == "decoding" or setting in settings[section]


def test_the_precision_of_a_run_is_kept(run):
    auto = override(RunConfig(), ["model.precision=auto"])
    assert resumed_settings(auto, run) == RunConfig()


def test_decisions_of_a_run_are_kept(run):
    config = override(RunConfig(), ["data.dataset=files"])
    decided = ["data.target_language=zh", "training.metric=bleu:char"]
    run.write_config(config_to_dict(override(config, decided)))
    for metric in ("auto", "bleu", "bleu:char"):
        given = override(config, [f"training.metric={metric}"])
        kept = resumed_settings(given, run)
        assert kept.training.metric == "bleu:char"
        assert kept.data.target_language == "zh"
    other = override(config, ["training.metric=chrf"])
    with pytest.raises(ValueError, match="training.metric: 'bleu:char' →"):
        resumed_settings(other, run)


def record(path):
    """Record a session of 7 steps."""
    with record_session(path, ONE_DEVICE, lambda: 7):
        pass


def lines(path):
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_killed_sessions_are_recorded(tmp_path, monkeypatch, capsys):
    path = tmp_path / "sessions.jsonl"
    steps = iter(range(1, 100))
    monkeypatch.setattr(resumption, "_RECORD_SECONDS", 0)
    with record_session(path, ONE_DEVICE, lambda: next(steps)) as note:
        note()
        (first,) = lines(path)
        note()
        (second,) = lines(path)
        # the file if the process is killed here
        killed = path.read_bytes()
    assert second["steps"] > first["steps"]
    assert second["seconds"] >= first["seconds"]
    path.write_bytes(killed)
    record(path)
    one, other = lines(path)
    assert one == second and other["steps"] == 7
    assert not capsys.readouterr().out
    one["machine"]["software"] = "keras 3.10.0"
    path.write_text(json.dumps(one) + "\n")
    record(path)
    assert capsys.readouterr().out.endswith("; before, with keras 3.10.0\n")


def test_machines_are_described_without_metadata_and_sysconf(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    # As with tensorflow-cpu, which installs the package `tensorflow`.
    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    software = describe_machine(ONE_DEVICE)["software"]
    assert f"tensorflow {tf.__version__}" in software


def test_an_incomplete_line_of_a_session_is_replaced(tmp_path):
    path = tmp_path / "sessions.jsonl"
    path.write_text('{"steps": 3}\n{"ste')
    record(path)
    assert [line["steps"] for line in lines(path)] == [3, 7]


def test_sessions_without_a_step_are_not_recorded(tmp_path):
    path = tmp_path / "sessions.jsonl"
    with record_session(path, ONE_DEVICE, lambda: 0) as note:
        note()
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_training_runs_are_recorded(tmp_path, number):
    run = RunFolder(tmp_path / "run")
    command = [sys.executable, "-m", "luong_keras", "train"]
    command += ["--preset", "demo", "--run-dir", str(run.path), "--set"]
    command += ["data.train_size=300", "model.units=8", "training.epochs=500"]
    command += ["model.embedding_size=8", "training.samples=0"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 300
        while not run.sessions.exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
    finally:
        process.send_signal(number)
        # The status after Ctrl-C is 130, although the run was saved.
        status = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}[number]
        assert process.wait() == status
    assert run.snapshot.exists() == (number == signal.SIGINT)
    (line,) = lines(run.sessions)
    assert line["steps"] > 0 and line["seconds"] > 0
