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
from luong_keras.training.snapshot import Snapshot
from tests.recipe.quick_runs import arrays

# Its parts have quick tests: the command, the recipe and `Translator.fit`.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "wmt14_train.py"
SETTINGS = [
    "data.dataset=files",
    "data.tokenizer=words",
    "decoding.beam_size=2",
    "model.units=16",
    "model.embedding_size=8",
    "model.dropout=0.3",
    "training.batch_size=8",
    "training.epochs=2",
    "training.samples=2",
    "training.first_halved_epoch=2",
    "training.snapshot_steps=2",
]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Return the command line without its run folder."""
    folder = tmp_path_factory.mktemp("corpus")
    settings = list(SETTINGS)
    for part, size in (("train", 96), ("dev", 6), ("test", 6)):
        pairs = phrasebook.split_pairs(part, size)
        for language, side in (("en", "source"), ("de", "target")):
            text = "".join(getattr(pair, side) + "\n" for pair in pairs)
            path = folder / f"{part}.{language}"
            path.write_text(text, encoding="utf-8")
        settings.append(f"data.{part}={folder / part}")
    return [str(SCRIPT), "--preset", "demo", "--set", *settings]


def run_here(command, folder, status=0):
    """Run the program in this process, where TensorFlow is loaded already."""
    before, sys.argv = sys.argv, [*command, "--run-dir", str(folder)]
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
            [sys.executable, *command, "--run-dir", folder],
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
        printed = output.read()
    assert code == 75, printed[-3000:]
    return printed


def assert_equal_weights(folder, other, *names):
    for name in names:
        found = arrays(folder / f"{name}.weights.h5")
        expected = arrays(other / f"{name}.weights.h5")
        assert found.keys() == expected.keys() and len(found) > 10
        for path, value in found.items():
            np.testing.assert_array_equal(value, expected[path], err_msg=path)


def assert_equal_runs(folder, other):
    assert_equal_weights(folder, other, "last", "best")
    assert read_log(folder) == read_log(other)
    test_texts = [(run / "test.txt").read_text() for run in (folder, other)]
    assert test_texts[0] == test_texts[1]


def read_log(folder):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if "second" not in k}
        for line in lines
    ]


def results(folder):
    lines = (folder / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def full_run(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    run_here(command, folder)
    return folder


@pytest.fixture
def exported(monkeypatch):
    """Record the folders of exports, which are not written."""
    folders = []

    def export(translator, folder, **_):
        folders.append(folder)
        return folder

    monkeypatch.setattr("luong_keras.recipe.stages.export_saved_model", export)
    return folders


def test_run_folder_has_all_files(full_run):
    assert {path.name for path in full_run.iterdir()} >= {
        "config.json",
        "corpus",
        "source_vocabulary.json",
        "log.jsonl",
        "target_vocabulary.json",
        "snapshot.npz",
        "best.weights.h5",
        "last.weights.h5",
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
    (result,) = results(full_run)
    assert {"bleu", "bleu_tokenized", "perplexity", "sentences"} <= {*result}
    (version,) = (full_run / "export").iterdir()
    assert version.name.isdecimal()
    assert (version / "saved_model.pb").exists()


def test_a_finished_run_continues_for_more_epochs(
    full_run, command, tmp_path, exported, capsys
):
    folder = tmp_path / "run"
    fewer = [*command, "training.epochs=1", "decoding.beam_size=1"]
    run_here(fewer, folder)
    assert len(exported) == len(read_log(folder)) == 1
    run_here(command, folder)
    assert_equal_runs(folder, full_run)
    assert len(exported) == len(results(folder)) == 2
    run_here(fewer, folder, status=2)
    assert "trained for 2 epochs" in capsys.readouterr().err


def test_a_run_without_attention_completes(command, tmp_path):
    settings = ["model.attention.kind=none", "training.epochs=1"]
    run_here([*command, *settings], tmp_path / "run")
    assert results(tmp_path / "run")
    assert not (tmp_path / "run" / "plots").exists()
    assert list((tmp_path / "run" / "export").iterdir())


def test_an_interrupted_run_ends_like_an_uninterrupted_one(
    full_run, command, tmp_path
):
    folder = tmp_path / "run"
    assert "Stopped after batch" in interrupt(command, folder)
    # It stops within 2 x 12 batches, before the steps that follow training.
    assert 2 <= Snapshot.read(folder / "snapshot.npz").position < 24
    assert not (folder / "last.weights.h5").exists()
    assert not (folder / "results.jsonl").exists()
    run_here(command, folder)
    assert_equal_runs(folder, full_run)


def test_an_interrupted_run_keeps_the_same_weights(command, tmp_path, exported):
    changed = [*command, "training.keep=2", "training.patience=9"]
    changed += ["training.final_weights=last"]
    whole, folder = tmp_path / "whole", tmp_path / "run"
    run_here(changed, whole)
    interrupt(changed, folder)
    run_here(changed, folder)
    names = "last", "checkpoints/epoch-001", "checkpoints/epoch-002"
    assert_equal_weights(folder, whole, *names)
    (result,) = results(folder)
    assert result["weights"] == "last"
    run_here(changed, folder)
    assert len(results(folder)) == 1
