"""Programs of tests that run in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def start_program(program, *arguments):
    """Start a Python program that imports no Keras; return its process."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "LUONG_KERAS_LAZY": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_program(program, *blocked, status=0, **environment):
    """Run a Python program in another process.

    Args:
        program: Its text, before which `sys` is imported. It can import the
            package, the tests and the examples.
        *blocked: Names of packages that it cannot import.
        status: The expected exit status.
        **environment: Further environment variables.

    Returns:
        What it prints; its errors if the expected status is not 0.
    """
    block = f"import sys\nsys.modules.update(dict.fromkeys({blocked}))\n"
    # Like pytest, by `pythonpath` in pyproject.toml.
    paths = [str(ROOT), str(ROOT / "examples")]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    environment = {"PYTHONPATH": os.pathsep.join(paths), **environment}
    done = subprocess.run(
        [sys.executable, "-c", block + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr[-5000:]
    return done.stderr if status else done.stdout
