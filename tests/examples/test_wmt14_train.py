"""WMT14 training program on a few sentences, with interruptions."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from luong_keras.data import phrasebook
from luong_keras.training.run_folder import RunFolder
from luong_keras.training.snapshot import Snapshot
from tests.recipe.quick_runs import arrays

# Its parts have quick tests: the command, the recipe and `Translator.fit`.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "wmt14_train.py"
SETTINGS = [
    "data.dataset=files",
    "data.tokenizer=words",
    "model.units=16",
    "model.embedding_size=8",
    "model.dropout=0.3",
    "training.batch_size=8",
    "training.epochs=2",
    "training.first_halved_epoch=2",
    "training.snapshot_steps=2",
    "training.samples=2",
    "decoding.beam_size=2",
]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Return the command line without its run folder."""
    folder = tmp_path_factory.mktemp("corpus")
    settings = list(SETTINGS)
    for part, split, size in (
        ("train", "train", 96),
        ("dev", "dev", 6),
        ("test", "test", 6),
    ):
        pairs = phrasebook.split_pairs(split, size)
        for language, side in (("en", "source"), ("de", "target")):
            text = "".join(getattr(pair, side) + "\n" for pair in pairs)
            path = folder / f"{part}.{language}"
            path.write_text(text, encoding="utf-8")
        settings.append(f"data.{part}={folder / part}")
    arguments = [part for s in settings for part in ("--set", s)]
    return [str(SCRIPT), "--preset", "demo", *arguments, "--run-dir"]


def run_here(command, folder, status=0):
    """Run the program in this process, where TensorFlow is loaded already."""
    before, sys.argv = sys.argv, [*command, str(folder)]
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(command[0], run_name="__main__")
    finally:
        sys.argv = before
    assert ended.value.code == status


def interrupt(command, folder):
    """Run the program in another process and interrupt it midway."""
    with (folder.parent / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            [sys.executable, *command, str(folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while process.poll() is None:
            if (folder / "snapshot.npz").exists():
                process.send_signal(signal.SIGTERM)
                break
            time.sleep(0.005)
        code = process.wait()
        output.seek(0)
        return code, output.read()


def weights(folder, name="last"):
    return arrays(folder / f"{name}.weights.h5")


def assert_equal(one, other):
    assert one.keys() == other.keys() and len(one) > 10
    for path, value in one.items():
        np.testing.assert_array_equal(value, other[path], err_msg=path)


def assert_equal_runs(folder, other):
    for name in ("last", "best"):
        assert_equal(weights(folder, name), weights(other, name))
    assert read_log(folder) == read_log(other)
    test_texts = [(run / "test.txt").read_text() for run in (folder, other)]
    assert test_texts[0] == test_texts[1]


def read_log(folder):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if "second" not in k}
        for line in lines
    ]


@pytest.fixture(scope="module")
def full_run(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    run_here(command, folder)
    return folder


def test_run_folder_has_all_files(full_run):
    names = {path.name for path in full_run.iterdir()}
    assert names >= {
        "config.json",
        "corpus",
        "source_vocabulary.json",
        "target_vocabulary.json",
        "snapshot.npz",
        "best.weights.h5",
        "last.weights.h5",
        "log.jsonl",
        "tensorboard",
        "samples",
        "plots",
        "export",
        "results.jsonl",
        "test.txt",
    }
    config = json.loads((full_run / "config.json").read_text())
    assert config["model"]["units"] == 16
    # The units are as configured; few sentences have few words.
    assert 50 < config["model"]["source_vocabulary_size"] < 1000
    log = read_log(full_run)
    assert [entry["epoch"] for entry in log] == [1, 2]
    assert log[1]["loss"] < log[0]["loss"]
    assert len((full_run / "test.txt").read_text().splitlines()) == 6
    (result,) = (full_run / "results.jsonl").read_text().splitlines()
    assert {"bleu", "bleu_tokenized", "perplexity", "sentences"} <= {
        *json.loads(result)
    }
    (version,) = (full_run / "export").iterdir()
    assert version.name.isdecimal()
    assert (version / "saved_model.pb").exists()


def test_a_finished_run_continues_for_more_epochs(
    full_run, command, tmp_path, monkeypatch, capsys
):
    exported = []

    def export(translator, folder, **_):
        exported.append(folder)
        return folder

    monkeypatch.setattr("luong_keras.recipe.stages.export_saved_model", export)
    folder = tmp_path / "run"
    fewer = ["--set", "training.epochs=1", "decoding.beam_size=1"]
    run_here([*command[:-1], *fewer, command[-1]], folder)
    assert len(exported) == 1 and len(read_log(folder)) == 1
    run_here(command, folder)
    assert_equal_runs(folder, full_run)
    assert len((folder / "results.jsonl").read_text().splitlines()) == 2
    assert len(exported) == 2
    run_here([*command[:-1], *fewer, command[-1]], folder, status=2)
    assert "trained for 2 epochs" in capsys.readouterr().err


def test_a_run_without_attention_completes(command, tmp_path):
    settings = ["model.attention.kind=none", "training.epochs=1"]
    changes = [part for s in settings for part in ("--set", s)]
    run_here([*command[:-1], *changes, command[-1]], tmp_path / "run")
    assert (tmp_path / "run" / "results.jsonl").exists()
    assert not (tmp_path / "run" / "plots").exists()
    assert list((tmp_path / "run" / "export").iterdir())


def test_an_interrupted_run_ends_like_an_uninterrupted_one(
    full_run, command, tmp_path
):
    folder = tmp_path / "run"
    code, output = interrupt(command, folder)
    assert code == 75, output[-3000:]
    assert "Stopped after batch" in output
    # It stops within 2 x 12 batches, before the steps that follow training.
    assert 2 <= Snapshot.read(folder / "snapshot.npz").position < 24
    assert not (folder / "last.weights.h5").exists()
    assert not (folder / "results.jsonl").exists()
    run_here(command, folder)
    assert_equal_runs(folder, full_run)


def test_an_interrupted_run_keeps_the_same_weights(
    command, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "luong_keras.recipe.stages.export_saved_model", lambda t, f, **_: f
    )
    settings = [
        "training.keep=2",
        *("training.final_weights=last", "training.patience=9"),
    ]
    changed = [*command[:-1], "--set", *settings, command[-1]]
    whole, folder = tmp_path / "whole", tmp_path / "run"
    run_here(changed, whole)
    code, output = interrupt(changed, folder)
    assert code == 75, output[-3000:]
    run_here(changed, folder)
    for name in ("last", "checkpoints/epoch-001", "checkpoints/epoch-002"):
        assert_equal(weights(folder, name), weights(whole, name))
    (result,) = RunFolder(folder).results.read_text().splitlines()
    assert json.loads(result)["weights"] == "last"
    run_here(changed, folder)
    assert len(RunFolder(folder).results.read_text().splitlines()) == 1
