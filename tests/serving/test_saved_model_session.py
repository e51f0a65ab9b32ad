"""Errors and timeouts of sessions."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.serving import saved_model_session
from luong_keras.serving.saved_model_session import (
    SavedModelError,
    SavedModelSession,
    run_in_server_runtime,
)


class Endless(tf.Module):
    """A model that counts for days."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "start")])
    def __call__(self, start):
        (end,) = tf.while_loop(lambda i: i < 10**15, lambda i: [i + 1], [start])
        return {"end": end}


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endless")
    tf.saved_model.save(Endless(), str(folder))
    return folder


@pytest.mark.parametrize(
    "code, message",
    [
        # Ends without reading its calls.
        ("sys.exit('no such file.')", "no such file"),
        # Is killed while it writes an answer.
        (
            "sys.stdin.buffer.read(); "
            "sys.stdout.buffer.write(pickle.dumps('answer')[:9]); "
            "sys.stdout.flush(); os.kill(os.getpid(), 9)",
            "ended by signal 9",
        ),
        # Fails after a long log; the alarm ends it if nobody reads the log.
        (
            "signal.alarm(20); sys.stdin.buffer.read(); "
            "print('a line of the log\\n' * 20_000, file=sys.stderr); "
            "sys.exit('no such operation.')",
            "no such operation[.] If",
        ),
    ],
)
def test_processes_that_end_early_are_an_error(
    tmp_path, monkeypatch, code, message
):
    program = tmp_path / "python"
    modules = "os, pickle, signal, sys"
    program.write_text(f"#!{sys.executable}\nimport {modules}\n{code}\n")
    program.chmod(0o755)
    tensor = SimpleNamespace(name="x:0")
    signature = SimpleNamespace(inputs={"x": tensor}, outputs={})
    graph = SimpleNamespace(signature_def={"f": signature})
    monkeypatch.setattr(saved_model_session, "read_meta_graph", lambda _: graph)
    monkeypatch.setattr(saved_model_session.sys, "executable", str(program))
    calls = [("f", {"x": np.zeros(1_250_000)})]
    with pytest.raises(SavedModelError, match=message):
        run_in_server_runtime(tmp_path, calls)


def test_process_finds_packages_of_this_process_only(
    endless, tmp_path, monkeypatch
):
    # As in a notebook that adds a folder of packages to `sys.path`.
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('found')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SavedModelError, match="found"):
        run_in_server_runtime(endless, [])


def test_calls_end_at_their_timeout(endless):
    session = SavedModelSession(endless)
    call = {"serving_default_start:0": np.array(1)}
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(call, {"end": "PartitionedCall:0"}, 100)
    session.close()


@pytest.mark.parametrize(
    "call, message",
    [
        (("default", {}), "'serving_default'.*Received: 'default'"),
        (("serving_default", {"stop": 1}), r"'start'.*Received: \['stop'\]"),
        (("serving_default", {}), r"'start'.*Received: \[\]"),
    ],
)
def test_calls_that_no_signature_takes_are_refused(endless, call, message):
    with pytest.raises(SavedModelError, match=message):
        run_in_server_runtime(endless, [call])


def test_process_ends_if_its_calls_cannot_be_computed(endless, monkeypatch):
    processes = []

    class Recorded(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            processes.append(self)

    def calls():
        assert processes, "the process starts while the calls are computed"
        yield "serving_default", {"start": np.array(10**15)}
        raise ValueError("no answer")

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    with pytest.raises(ValueError, match="no answer"):
        run_in_server_runtime(endless, calls())
    assert processes[0].returncode is not None
