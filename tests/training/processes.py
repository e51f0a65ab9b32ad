"""Processes of `jax_run` and `replicas_run`, without TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def in_a_process(module, folder, *names, **environment):
    """Start a process that calls the named functions of a module."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.training.{module}", folder, *names],
        # Of the working folder.
        env={**os.environ, "PYTHONSAFEPATH": "", **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answers(process):
    """Return the results that a process prints, by name."""
    try:
        output, errors = process.communicate(timeout=1800)
    finally:
        process.kill()
    assert process.returncode == 0, errors[-5000:]
    found = {}
    for line in output.splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found
