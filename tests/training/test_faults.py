"""Training runs on a disk that fails at any moment.

A first run counts the calls to the disk. Then, for each call, a run in which
this call fails ends with a clear error, or continues. The same run started
again ends with exactly the results of the first run.
"""

import contextlib
import errno
import os
import pathlib
import shutil

import keras
import pytest

from tests.training.resume_run import train

# independent of the backend
pytestmark = pytest.mark.slow_on_jax

PLACES = [
    (os, "fsync"),
    (os, "replace"),
    (os, "link"),
    (shutil, "disk_usage"),
    (pathlib.Path, "write_bytes"),
    (keras.Model, "save_weights"),
]
FILE = str | pathlib.Path
CALLS = 79  # in a whole run; a test counts them


@contextlib.contextmanager
def failing(number=None, error=errno.ENOSPC):
    """Let one of the calls fail; yield the list of all calls."""
    calls = []

    def wrapped(name, original):
        def call(*arguments, **options):
            calls.append(name)
            if len(calls) - 1 == number:
                # As in Python, only a call with a path names the file.
                path = [a for a in arguments[:1] if isinstance(a, FILE)]
                raise OSError(error, os.strerror(error), *map(str, path))
            return original(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for place, name in PLACES:
            patch.setattr(place, name, wrapped(name, getattr(place, name)))
        yield calls


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    with failing() as calls:
        result = train(tmp_path_factory.mktemp("first_run"))
    return {**result, "calls": calls}


def test_the_disk_calls_of_a_run_are_counted(first_run):
    assert len(first_run["calls"]) == CALLS
    assert {*first_run["calls"]} >= {"fsync", "replace", "link"}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CALLS))
def test_runs_resume_after_any_failed_disk_call(tmp_path, first_run, number):
    name = first_run["calls"][number]
    with failing(number) as calls:
        if name == "link":  # The file is renamed instead.
            train(tmp_path)
        else:
            with pytest.raises(OSError, match="the disk is full") as raised:
                train(tmp_path)
            assert raised.value.errno == errno.ENOSPC
            assert str(tmp_path) in str(raised.value)
    assert calls[number] == name
    assert not list(tmp_path.glob(".partial-*"))
    resumed = train(tmp_path)
    for key in ("log", "best", "digests"):
        assert resumed[key] == first_run[key]
    # The lock file stays, because another process may be waiting for it.
    hidden = [p.name for p in tmp_path.iterdir() if p.name[0] == "."]
    assert hidden == [".snapshot.npz.lock"]
