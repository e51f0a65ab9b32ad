import json
import re
import signal
import subprocess
import sys
import time

import pytest

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, override
from luong_keras.recipe import resumption
from luong_keras.recipe.decisions import kept_decisions
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.resumption import (
    MAY_CHANGE,
    check_resumable,
    decide_precision,
    is_finished,
    mark_finished,
    print_epochs,
    session,
    write_config,
)
from luong_keras.training.run_folder import RunFolder


@pytest.fixture
def run(tmp_path):
    run = RunFolder(tmp_path / "run")
    write_config(RunConfig(), run)
    return run


def trained(run, epochs):
    lines = [json.dumps({"epoch": e + 1, "loss": 1.0}) for e in range(epochs)]
    run.log.write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize(
    "assignment",
    [
        "training.epochs=20",
        "training.snapshot_steps=7",
        "training.samples=1",
        "training.keep=3",
        "training.patience=4",
        "training.final_weights=last",
        "decoding.beam_size=3",
        "decoding.max_source_length=50",
        # The run has the size that its text gave.
        "model.source_vocabulary_size=70000",
    ],
)
def test_what_may_change(run, assignment):
    check_resumable(override(RunConfig(), [assignment]), run)


@pytest.mark.parametrize(
    "assignments, said",
    [
        (["epochs=5", "first_halved_epoch=5"], ""),
        (
            ["epochs=5", "first_halved_epoch=6"],
            "stays 1: .* epoch 6 on .* of 5",
        ),
        (
            [*("epochs=5", "first_halved_epoch=5"), "halving=after_epoch"],
            "stays 1: .* epoch 5 on",
        ),
        (["epochs=5", "first_halved_epoch=6", "halving=plateau"], ""),
    ],
)
def test_a_rate_that_is_never_halved_is_said(
    tmp_path, assignments, said, capsys
):
    config = override(RunConfig(), [f"training.{a}" for a in assignments])
    print_epochs(config, RunFolder(tmp_path))
    told = capsys.readouterr().out
    assert bool(told) == bool(said) and re.search(said, told)


def test_a_run_that_continues_is_said(run, capsys):
    print_epochs(RunConfig(), run)
    assert "continues" not in capsys.readouterr().out
    run.snapshot.touch()
    trained(run, 3)
    print_epochs(RunConfig(), run)
    assert "; 3 of 12 epochs are done" in capsys.readouterr().out


@pytest.mark.parametrize(
    "assignment, said",
    [
        ("training.batch_size=64", "training.batch_size: 128 → 64"),
        ("training.seed=2", "training.seed: 1 → 2"),
        ("training.average_epochs=3", "training.average_epochs: None → 3"),
        ("model.attention.half_width=5", "model.attention.half_width: 10 → 5"),
        ("data.train=x", "data.train: None → 'x'"),
    ],
)
def test_what_may_not_change_is_told_in_full(run, assignment, said):
    before = run.config.read_text()
    with pytest.raises(ValueError) as caught:
        check_resumable(override(RunConfig(), [assignment]), run)
    assert said in str(caught.value)
    assert "Use a new folder" in str(caught.value)
    assert run.config.read_text() == before


def test_every_difference_is_told(run):
    changed = ["training.batch_size=64", "training.epochs=20", "model.units=8"]
    with pytest.raises(ValueError) as caught:
        check_resumable(override(RunConfig(), changed), run)
    told = str(caught.value).partition("different one: ")[2]
    assert told.startswith("model.units: 1000 → 8; training.batch_size: 128")
    assert "epochs" not in told


def test_trained_epochs_are_not_taken_back(run):
    trained(run, 5)
    check_resumable(override(RunConfig(), ["training.epochs=5"]), run)
    with pytest.raises(ValueError, match="trained for 5 .* Received: 4"):
        check_resumable(override(RunConfig(), ["training.epochs=4"]), run)


def test_an_older_run_has_the_defaults_of_newer_settings(run):
    values = config_to_dict(RunConfig())
    del values["data"]["batching"], values["model"]["attention"]["use_scale"]
    run.config.write_text(json.dumps(values))
    check_resumable(RunConfig(), run)
    changed = override(RunConfig(), ["data.batching=authors"])
    with pytest.raises(ValueError, match="data.batching: 'sorted_pools' →"):
        check_resumable(changed, run)


def test_a_run_is_finished_for_what_it_was_scored_with(run):
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


def test_a_run_whose_patience_let_it_go_on_is_not_finished(run):
    trained(run, 5)
    mark_finished(RunConfig(), run)
    assert is_finished(RunConfig(), run)
    trained(run, 7)
    assert not is_finished(RunConfig(), run)


def test_the_list_names_settings():
    settings = config_to_dict(RunConfig())
    for name in MAY_CHANGE:
        section, _, setting = name.partition(".")
        assert section == "decoding" or setting in settings[section]


def test_auto_is_decided_where_a_run_begins_and_kept(
    run, tmp_path, monkeypatch
):
    auto = override(RunConfig(), ["model.precision=auto"])
    measured = iter(["mixed_bfloat16", "float32"])
    monkeypatch.setattr(resumption, "decided", lambda _: next(measured))
    fresh = RunFolder(tmp_path / "fresh")
    begun = decide_precision(auto, fresh)
    assert begun.model.precision == "mixed_bfloat16"
    fresh.path.mkdir()
    write_config(begun, fresh)
    # Another machine would choose the other one.
    again = decide_precision(auto, fresh)
    assert again == begun
    check_resumable(again, fresh)
    # A run of another precision continues in that, too.
    assert decide_precision(auto, run) == RunConfig()
    assert decide_precision(begun, run) == begun
    with pytest.raises(ValueError, match="precision: 'float32' → 'mixed_bfl"):
        check_resumable(begun, run)


def test_what_a_run_has_decided_stays(tmp_path):
    run = RunFolder(tmp_path / "begun")
    asked = override(RunConfig(), ["data.dataset=files"])
    assert kept_decisions(asked, run) == asked
    decided = ["data.target_language=zh", "training.metric=bleu:char"]
    write_config(override(asked, decided), run)
    for metric in ("auto", "bleu", "bleu:char"):
        given = override(asked, [f"training.metric={metric}"])
        kept = kept_decisions(given, run)
        assert kept.training.metric == "bleu:char"
        assert kept.data.target_language == "zh"
        check_resumable(kept, run)
    other = override(asked, ["training.metric=chrf"])
    with pytest.raises(ValueError, match="training.metric: 'bleu:char' →"):
        check_resumable(kept_decisions(other, run), run)


def lines(path):
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_call_that_is_killed_has_a_line(tmp_path, monkeypatch):
    path = tmp_path / "sessions.jsonl"
    steps = iter(range(1, 100))
    monkeypatch.setattr(resumption, "_SECONDS", 0)
    with session(path, ONE_DEVICE, lambda: next(steps)) as note:
        note()
        (first,) = lines(path)
        note()
        (second,) = lines(path)
        # What a call leaves that ends here.
        killed = path.read_bytes()
    assert second["steps"] > first["steps"]
    assert second["seconds"] >= first["seconds"]
    path.write_bytes(killed)
    with session(path, ONE_DEVICE, lambda: 7):
        pass
    one, other = lines(path)
    assert one == second and other["steps"] == 7


def test_a_call_without_a_step_has_no_line(tmp_path):
    path = tmp_path / "sessions.jsonl"
    with session(path, ONE_DEVICE, lambda: 0) as note:
        note()
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGINT])
def test_a_training_that_is_killed_has_a_line(tmp_path, ends):
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
        process.send_signal(ends)
        # Ctrl-C is 130, also where all was saved.
        status = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}[ends]
        assert process.wait() == status
    assert run.snapshot.exists() == (ends == signal.SIGINT)
    (line,) = lines(run.sessions)
    assert line["steps"] > 0 and line["seconds"] > 0
