"""A disk that fails while the text of a run is prepared, or read again.

Every file of the run folder that is opened, to write it or to read it, fails
to open once; so does every flush, rename and text that is written. The call
ends with one error that names the file, and the same call again comes to what
a run has that nothing happened to.
"""

import builtins
import contextlib
import dataclasses
import errno
import io
import os

import pytest

from luong_keras.presets import PRESETS
from luong_keras.recipe import run as recipe
from luong_keras.training.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow
DEMO = PRESETS["demo"]
CONFIG = dataclasses.replace(
    DEMO, data=dataclasses.replace(DEMO.data, train_size=40)
)
CALLS = {"new": 95, "begun": 48}  # a test counts them
PARAMETERS = [
    pytest.param(
        stage, number, marks=() if number % 24 == 3 else pytest.mark.slow
    )
    for stage, count in CALLS.items()
    for number in range(count)
]


@contextlib.contextmanager
def failing(folder, number=None):
    """Lets one of the calls fail; the list has what was called."""
    calls = []

    def wrapped(name, original):
        def call(*arguments, **options):
            path = str(arguments[0])
            if name != "fsync" and str(folder) not in path:
                return original(*arguments, **options)
            calls.append((name, path))
            if len(calls) - 1 == number:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return original(*arguments, **options)

        return call

    places = [(builtins, "open"), (io, "open"), (os, "fsync"), (os, "replace")]
    with pytest.MonkeyPatch.context() as patch:
        for place, name in places:
            patch.setattr(place, name, wrapped(name, getattr(place, name)))
        yield calls


def state(run):
    """The files of a run, without what has the time in it."""
    return {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file()
    }


def prepared(run):
    config, datasets, _, batches = recipe._prepare(CONFIG, run)
    return batches.fingerprint, config, datasets.dev, datasets.test


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("straight"))
    calls = {}
    with failing(run.path) as calls["new"]:
        found = prepared(run)
    files = state(run)
    with failing(run.path) as calls["begun"]:
        assert prepared(run) == found
    assert state(run) == files
    return found, files, calls


def test_the_calls_are_counted(straight):
    *_, calls = straight
    assert {stage: len(made) for stage, made in calls.items()} == CALLS
    assert {name for name, _ in calls["new"]} == {"open", "fsync", "replace"}


@pytest.mark.parametrize("stage, number", PARAMETERS)
def test_a_disk_that_fails_loses_nothing(tmp_path, straight, stage, number):
    run = RunFolder(tmp_path)
    found, files, calls = straight
    if stage == "begun":
        prepared(run)
    with failing(run.path, number) as made:
        try:
            assert prepared(run) == found
        except (OSError, ValueError) as error:
            assert str(tmp_path) in str(error)
    assert len(made) > number  # It came to the call that fails.
    assert prepared(run) == found
    assert state(run) == files
