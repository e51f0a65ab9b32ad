"""Examples of beam search over user-defined models, briefly trained."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "beam_search_functional": ("greedy", "beam 5"),
    "beam_search_transformer": ("beam 1", "beam 5"),
}


def compared_searches(printed):
    return tuple(re.findall(r"^(.+): [\d.]+% right", printed, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.slow_on_jax
@pytest.mark.parametrize("name", PROGRAMS)
def test_example_compares_its_searches(name, capsys):
    importlib.import_module(name).main(count=100, epochs=1, tested=4)
    assert compared_searches(capsys.readouterr().out) == PROGRAMS[name]


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="the TensorFlow run does it"
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_example_runs_without_tensorflow(name):
    program = (
        "import sys\n"
        "sys.modules['tensorflow'] = None\n"
        f"import {name}\n"
        f"{name}.main(count=100, epochs=1, tested=4)\n"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert compared_searches(done.stdout) == PROGRAMS[name]
