"""Preparation of the text of a run on a disk that fails.

Each opening of a file of the run folder fails once, as does each flush and
each rename. The call ends with an error that names the file, or succeeds. The
same call again leads to the same results and files as without a failure.
"""

import builtins
import contextlib
import dataclasses
import errno
import io
import os

import pytest

from luong_keras.presets import PRESETS
from luong_keras.recipe import stages as recipe
from luong_keras.training.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow
DEMO = PRESETS["demo"]
CONFIG = dataclasses.replace(
    DEMO, data=dataclasses.replace(DEMO.data, train_size=40)
)
CALLS = {"new": 93, "resumed": 45}  # a test counts them
PARAMETERS = [
    pytest.param(
        stage, number, marks=() if number % 24 == 3 else pytest.mark.slow
    )
    for stage, count in CALLS.items()
    for number in range(count)
]


@contextlib.contextmanager
def failing(folder, number=None):
    """Let one of the calls fail; yield the list of all calls."""
    calls = []

    def wrapped(name, original):
        def call(*arguments, **options):
            path = str(arguments[0])
            if name != "fsync" and str(folder) not in path:
                return original(*arguments, **options)
            calls.append((name, path))
            if len(calls) - 1 == number:
                # As in Python, an error of `fsync` names no file.
                file = None if name == "fsync" else path
                raise OSError(errno.EIO, os.strerror(errno.EIO), file)
            return original(*arguments, **options)

        return call

    places = [(builtins, "open"), (io, "open"), (os, "fsync"), (os, "replace")]
    with pytest.MonkeyPatch.context() as patch:
        for place, name in places:
            patch.setattr(place, name, wrapped(name, getattr(place, name)))
        yield calls


def state(run):
    """Read the files of a run."""
    return {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file()
    }


def prepare(run):
    config, datasets, _, batches = recipe._prepare_run(CONFIG, run)
    return batches.fingerprint, config, datasets.dev, datasets.test


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("first_run"))
    calls = {}
    with failing(run.path) as calls["new"]:
        found = prepare(run)
    files = state(run)
    with failing(run.path) as calls["resumed"]:
        assert prepare(run) == found
    assert state(run) == files
    return found, files, calls


def test_the_disk_calls_of_the_preparation_are_counted(first_run):
    *_, calls = first_run
    assert {stage: len(made) for stage, made in calls.items()} == CALLS
    assert {name for name, _ in calls["new"]} == {"open", "fsync", "replace"}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("stage, number", PARAMETERS)
def test_preparation_succeeds_after_any_failed_disk_call(
    tmp_path, first_run, stage, number
):
    run = RunFolder(tmp_path)
    found, files, calls = first_run
    if stage == "resumed":
        prepare(run)
    with failing(run.path, number) as made:
        try:
            assert prepare(run) == found
        except (OSError, ValueError) as error:
            assert str(tmp_path) in str(error)
    assert len(made) > number  # The failing call was reached.
    assert prepare(run) == found
    assert state(run) == files
