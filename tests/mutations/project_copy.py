"""Test runs in a copy of the project in which some modules are changed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = "luong_keras"
CLIENT = "export/client"
_NOT_COPIED = (".git", ".venv*", ".*_cache", "__pycache__", "runs")


class Outcome(NamedTuple):
    """Result of a test run.

    `status` is "passed", "failed", "timed out" (one test ran for half of the
    limit or more), "cut" (the limit was reached, but no single test ran that
    long) or "no tests". `tests` are the tests that failed or did not end, and
    `passed` is the number of tests that passed.
    """

    status: str
    tests: list[str]
    passed: int
    seconds: float


def run_tests(
    tests: Sequence[str],
    *,
    changed: dict[str, str] | None = None,
    options: Sequence[str] = (),
    backend: str = "tensorflow",
    limit: float | None = None,
) -> Outcome:
    """Run tests, in the order given, in a copy of the project.

    Args:
        tests: Paths or node ids of pytest.
        changed: New texts of modules, by their paths in the package.
        options: Further arguments of pytest.
        backend: The backend of Keras.
        limit: Seconds after which the tests are ended.
    """
    if backend == "jax":
        options = [*options, "-m", "not tensorflow and not slow"]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        for module, text in (changed or {}).items():
            (copy / PACKAGE / module).write_text(text, encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-v", "--tb=no", "--color=no"),
            *("-p", "no:xdist", "-p", "no:cacheprovider", *options, *tests),
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(copy), str(copy / CLIENT)]),
            "KERAS_BACKEND": backend,
        }
        return _run(command, copy, environment, Path(folder, "output"), limit)


def _run(command, folder, environment, output, limit):
    begin = time.time()
    with output.open("wb") as file:
        # In a new session, so that processes started by the tests end too.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    text = output.read_text(encoding="utf-8", errors="replace")
    seconds = round(time.time() - begin, 1)
    if status is None:
        # Pytest writes the name of a test when it begins.
        silent = time.time() - output.stat().st_mtime
        status = "timed out" if silent >= limit / 2 else "cut"
    return Outcome(*read_output(status, text), seconds)


def read_output(status: int | str, text: str) -> tuple[str, list[str], int]:
    """Read the exit status of pytest and its verbose output.

    Args:
        status: The exit status, or the status of the outcome if pytest was
            ended.
        text: The output.

    Returns:
        The first three fields of an `Outcome`.
    """
    passed = len(re.findall(r" PASSED +\[ *\d+%\]$", text, re.MULTILINE))
    if isinstance(status, str):
        return status, [text.rstrip().rpartition("\n")[2]], passed
    if status in (0, 5):
        return ("no tests" if status else "passed"), [], passed
    broken = status == 4 and "while loading conftest" not in text
    if broken or status == 3:  # internal error
        sys.exit(f"pytest could not run the tests:\n{text[-2000:]}")
    failed = re.findall(
        r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", text, re.MULTILINE
    )
    failed = list(dict.fromkeys(failed)) or [f"pytest ended with {status}"]
    return "failed", failed, passed
