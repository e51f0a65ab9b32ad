"""What a process says of itself, and what one that ends has said."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.serving import saved_model_session
from luong_keras.serving.saved_model_session import (
    SavedModelError,
    SavedModelSession,
    process_memory,
    run_in_server_runtime,
)

# Ends by itself where nobody reads what it says.
TALKATIVE = """#!{python}
import signal, sys
signal.alarm(20)
sys.stdin.buffer.read()
sys.stderr.write("a line of the log\\n" * 20_000 + "no such operation.\\n")
sys.stderr.flush()
sys.exit(1)
"""


def test_memory_is_in_bytes_and_zero_where_it_is_not_said():
    # This process holds more than Python alone, and less than the machine.
    assert 10e6 < process_memory("VmRSS") <= process_memory("VmHWM") < 1e12
    assert process_memory("VmSomethingElse") == 0


def test_the_last_line_of_a_long_log(tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.write_text(TALKATIVE.format(python=sys.executable))
    program.chmod(0o755)
    graph = SimpleNamespace(signature_def={})
    monkeypatch.setattr(saved_model_session, "read_meta_graph", lambda _: graph)
    monkeypatch.setattr(saved_model_session.sys, "executable", str(program))
    with pytest.raises(SavedModelError, match="no such operation[.]$"):
        run_in_server_runtime(tmp_path, [])


class Endless(tf.Module):
    """Counts for days."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "start")])
    def __call__(self, start):
        (end,) = tf.while_loop(lambda i: i < 10**15, lambda i: [i + 1], [start])
        return {"end": end}


def test_the_runtime_gives_up_a_call_that_takes_too_long(tmp_path):
    tf.saved_model.save(Endless(), str(tmp_path))
    session = SavedModelSession(tmp_path)
    call = {"serving_default_start:0": np.array(1)}
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(call, {"end": "PartitionedCall:0"}, 100)
    session.close()
