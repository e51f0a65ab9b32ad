"""A disk that fails at any moment: what happens, and what is lost.

A small run is made once to count everything that it asks of the disk. Then
each of these calls fails in a run of its own, which ends with one clear line,
or continues; given again, the run ends with the bits of the straight one.
"""

import contextlib
import errno
import os
import pathlib
import runpy
import shutil

import keras
import pytest

# Nothing of it depends on the backend.
pytestmark = pytest.mark.slow_on_jax

SCRIPT = pathlib.Path(__file__).with_name("resume_run.py")
RUN = runpy.run_path(str(SCRIPT), run_name="resume_run")
PLACES = [
    (os, "fsync"),
    (os, "replace"),
    (os, "link"),
    (shutil, "disk_usage"),
    (pathlib.Path, "write_text"),
    (pathlib.Path, "write_bytes"),
    (keras.Model, "save_weights"),
]
CALLS = 80  # of the whole run; a test counts them
SAMPLE = range(3, CALLS, 19)


@contextlib.contextmanager
def failing(number=None, error=errno.ENOSPC):
    """Lets one of the calls fail; the list has what was called."""
    calls = []

    def wrapped(name, original):
        def call(*arguments, **options):
            calls.append(name)
            if len(calls) - 1 == number:
                raise OSError(error, os.strerror(error), str(arguments[0]))
            return original(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for place, name in PLACES:
            patch.setattr(place, name, wrapped(name, getattr(place, name)))
        yield calls


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    with failing() as calls:
        result = RUN["train"](tmp_path_factory.mktemp("straight"))
    return {**result, "calls": calls}


def test_the_calls_are_counted(straight):
    assert len(straight["calls"]) == CALLS
    assert {*straight["calls"]} >= {"fsync", "replace", "link", "write_text"}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow)
        for n in range(CALLS)
    ],
)
def test_a_disk_that_is_full_loses_nothing(tmp_path, straight, number):
    name = straight["calls"][number]
    with failing(number) as calls:
        if name == "link":  # There is another way to keep the file.
            RUN["train"](tmp_path)
        else:
            with pytest.raises(OSError, match="the disk is full") as raised:
                RUN["train"](tmp_path)
            assert raised.value.errno == errno.ENOSPC
            assert str(tmp_path) in str(raised.value)
    assert calls[number] == name
    assert not list(tmp_path.glob(".partial-*"))
    resumed = RUN["train"](tmp_path)
    for key in ("log", "best", "digests"):
        assert resumed[key] == straight[key]
    # The file that is locked stays: another process may be waiting for it.
    hidden = [p.name for p in tmp_path.iterdir() if p.name[0] == "."]
    assert hidden == [".snapshot.npz.lock"]
