"""Keeps off the terminal what TensorFlow says of itself at every start.

TensorFlow and its libraries write to the descriptor of the standard error, in
part before they read how much they are to say. A child process reads that
descriptor, leaves out what says nothing of this run and passes on the rest:
what a crash says last, too. Python's own `sys.stderr` stays the terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_DRIVER = Path("/proc/driver/nvidia/version")
# Information and warnings, as the level says; what comes before such a line;
# and errors that are none: libraries registered twice, a slower operation.
_NOISE = re.compile(
    rb"[IW]\d{4} \d\d:\d\d:\d\d\.\d+|[IW]0000 00:00:\d+\.\d+"
    rb"|WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|E0000 .*(Unable to register cu\w+ factory|oneDNN supports DT_\w+ only)"
)
# Where there is no card, nobody wants to know that it does not answer.
_NO_CARD = re.compile(rb"E0000 .*failed call to cuInit")


@contextlib.contextmanager
def without_startup_noise(
    arguments: list[str], environment: Mapping[str, str] = os.environ
) -> Iterator[None]:
    """Filters the standard error of this process while it lasts.

    Nothing is filtered with `--debug`, where TF_CPP_MIN_LOG_LEVEL is another
    than 2, which means errors alone, or where the system has no `fork`.

    Args:
        arguments: of the command.
        environment: of the process.
    """
    asked = "--debug" in arguments or environment.get(_LEVEL, "2") != "2"
    if asked or not hasattr(os, "fork"):
        yield
        return
    terminal = os.dup(2)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        _pass_on(reading, terminal)
    os.close(reading)
    os.dup2(writing, 2)
    os.close(writing)
    before = sys.stderr
    sys.stderr = os.fdopen(
        terminal, "w", buffering=1, errors="backslashreplace", closefd=False
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before
        os.dup2(terminal, 2)
        os.close(terminal)
        # Everything has been said before the prompt comes back.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def is_noise(line: bytes, has_card: bool) -> bool:
    """Whether a line says nothing of this run.

    Args:
        line: of the standard error.
        has_card: whether the machine has a driver of NVIDIA's.

    Example:
        >>> is_noise(b"I0000 00:00:17.3 19 port.cc:153] oneDNN is on", False)
        True
        >>> is_noise(b"E0000 00:00:17.3 19 gpu.cc:1] out of memory", False)
        False
    """
    if _NOISE.match(line):
        return True
    return not has_card and _NO_CARD.match(line) is not None


def _pass_on(reading: int, writing: int) -> None:
    """What the child does until its parent has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # They are for the parent, which may have something to say of them.
        signal.signal(number, signal.SIG_IGN)
    has_card = _DRIVER.exists()
    with contextlib.suppress(OSError), os.fdopen(reading, "rb") as lines:
        for line in lines:
            if not is_noise(line, has_card):
                os.write(writing, line)
    os._exit(0)
