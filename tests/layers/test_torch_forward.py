"""The layers run forward on PyTorch; they are trained on the other two."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import keras
assert keras.backend.backend() == "torch"
from tests.layer_checks import run_every_layer
run_every_layer()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed",
)
def test_every_layer_runs_on_pytorch():
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
