"""The lines about the calls that trained a run."""

import json
import signal
import subprocess
import sys
import time

import pytest

from luong_keras.recipe import sessions
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.sessions import session
from luong_keras.training.run_folder import RunFolder


def lines(path):
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_call_that_is_killed_has_a_line(tmp_path, monkeypatch):
    path = tmp_path / "sessions.jsonl"
    steps = iter(range(1, 100))
    monkeypatch.setattr(sessions, "_SECONDS", 0)
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
