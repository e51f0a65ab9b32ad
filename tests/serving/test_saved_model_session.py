"""What a process says of itself, and what one that ends has said."""

import sys
from types import SimpleNamespace

import pytest

from luong_keras.serving import saved_model_session
from luong_keras.serving.saved_model_session import (
    SavedModelError,
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
