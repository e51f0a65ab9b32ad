"""Runs on several devices of JAX, or in several processes, against one device.

`jax_run` has the runs; `kills` has runs of the command that are killed.
"""

import functools
from pathlib import Path

import keras
import numpy as np
import pytest

from luong_keras.training.snapshot import Snapshot
from tests.training import kills
from tests.training.processes import answers, in_a_process

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="needs several devices of JAX"
)
MANY = [
    "compare,1+2+4,global,adam,word",
    "compare,2+4,local,sgd,sentence",
    "compare,4,local,adam,nominal",
    "compare,1+2,global,sgd,sentence,3",
]
start = functools.partial(in_a_process, "jax_run")


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    names = ["compare,2,global,sgd,word,2", "masks"]
    return answers(start(tmp_path_factory.mktemp("few"), *names))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    return answers(start(folder, *MANY, "dropout,2"))


def check_equal_training(found):
    logs = found.pop("logs")
    # If no gradient were clipped, wrong clipping would not be noticed.
    assert found.pop("clipped") > 0.8 * 50
    for several in found.values():
        assert several["weights"] < 1e-5
        for name, values in logs.items():
            np.testing.assert_allclose(several["logs"][name], values, 1e-5)


def test_two_devices_with_micro_batches_train_as_one(few):
    check_equal_training(few["compare,2,global,sgd,word,2"])


def test_devices_draw_different_dropout_masks(few):
    # Without a stride both devices would drop the same values of equal rows.
    losses = few["masks"]["losses"]
    assert len({round(loss, 4) for loss in losses}) == 4
    assert few["masks"]["equal seeds"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_several_devices_train_as_one_device(many, name):
    check_equal_training(many[name])


@pytest.mark.slow
def test_runs_with_dropout_have_reproducible_losses(many):
    first, second = many["dropout,2"]
    assert first == second


@pytest.mark.slow
def test_two_processes_train_as_two_devices(tmp_path):
    processes = [
        start(tmp_path, "one_process", **variables)
        for variables in kills.environments(2)
    ]
    found = [answers(process)["one_process"] for process in processes]
    expected = answers(start(tmp_path, "two_devices"))["two_devices"]
    assert [each["world"] for each in found] == [2, 2]
    weights = [
        dict(np.load(tmp_path / f"weights-{name}.npz"))
        for name in (0, 1, "two")
    ]
    for arrays in weights[:2]:
        for name, array in weights[2].items():
            np.testing.assert_array_equal(arrays[name], array)
    for each in found:
        assert each["logs"] == expected["logs"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    kills.write_text(folder)
    return folder


def run_to_the_end(text, run, **options):
    processes = kills.start(text, run, **options)
    assert kills.wait(processes, 600)
    log = Path(f"{run}.0.log").read_text()
    assert [p.returncode for p in processes] == [0] * len(processes), log
    return kills.state(run)


@pytest.mark.slow
def test_runs_continue_on_another_backend_with_other_devices(text):
    """Continue a run of two JAX processes on one device of TensorFlow."""
    # TensorFlow draws other initial weights from the same seed.
    expected, log = run_to_the_end(text, text / "expected", count=1)
    run = text / "moved"
    stop = ("--stop-after", "1s")
    for count, backend in ((2, "jax"), (1, "tensorflow"), (1, "jax")):
        processes = kills.start(text, run, count, backend, stop)
        assert kills.wait(processes, 600)
        assert [process.returncode for process in processes] == [0] * count
    assert 0 < Snapshot.read(run / "snapshot.npz").position < 80
    found, moved_log = run_to_the_end(text, run, count=1, backend="tensorflow")
    assert kills.difference(found, expected) < 1e-4
    for line, other in zip(moved_log, log, strict=True):
        for name, value in other.items():
            assert line[name] == pytest.approx(value, rel=1e-3), name


@pytest.mark.slow
def test_a_killed_process_ends_the_other_process(text):
    run = text / "killed"
    processes = kills.start(text, run)
    kills.wait_for_connection(processes, run)
    while not (run / "snapshot.npz").exists():
        assert all(process.poll() is None for process in processes)
    assert kills.kill(processes, [1]) < 60
    assert processes[0].returncode == 75
    last = Path(f"{run}.0.log").read_text().strip().splitlines()[-1]
    assert "Process 0 of 2 lost its connection to the others" in last
    assert "the run continues from its last snapshot" in last
    one, _ = run_to_the_end(text, run, count=1)
    uninterrupted, _ = run_to_the_end(text, text / "uninterrupted")
    assert kills.difference(one, uninterrupted) < 1e-5
