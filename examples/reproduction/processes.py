"""Processes side by side that do a plan's parts, and one signal stops."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from luong_keras.files.json_file import write_json
from reproduction.tasks import STOPPED

_MODULE = "reproduction.worker"
# Each process has its share of the cores.
_THREADS = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Failure:
    """A part that came to no end.

    Attributes:
        name: of the run.
        why: the last line that it wrote, or what else is known.
        log: the file of all that it wrote.
    """

    name: str
    why: str
    log: Path


class Processes:
    """Processes of workers, a part each.

    Args:
        folder: of their logs.
        jobs: how many there are at a time.
    """

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self._processes: set[subprocess.Popen] = set()
        self._stopping = threading.Event()

    @property
    def stopping(self) -> bool:
        """Whether a signal has come: nothing is begun any more."""
        return self._stopping.is_set()

    def run(self, name: str, values: Mapping[str, Any]) -> Failure | None:
        """Does one part in a process of its own; returns at its end.

        Args:
            name: of the part, and of its log.
            values: the task, as the worker reads it.
        """
        log = self.folder / f"{name}.log"
        path = self.folder / f"{name}.task.json"
        write_json(path, values)
        try:
            with log.open("ab") as output:
                begin = output.tell()
                status = self._status(path, output)
        finally:
            path.unlink(missing_ok=True)
        if status == 0:
            return None
        if status == STOPPED or self.stopping:
            why = "stopped; the same command goes on"
        elif status < 0:
            why = _signal(-status)
        else:
            why = _last(log, begin)
        return Failure(name, why, log)

    def _status(self, task: Path, output: BinaryIO) -> int:
        """What a process ended with."""
        process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(task)],
            # It ends with this process, however that ends.
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=self._environment(),
            # Ctrl-C reaches them through this process alone.
            start_new_session=True,
        )
        self._processes.add(process)
        if self.stopping:  # since the caller asked
            process.terminate()
        status = process.wait()
        self._processes.discard(process)
        if process.stdin is not None:
            process.stdin.close()
        return status

    def _environment(self) -> dict[str, str]:
        from luong_keras.text.threads import available_cores

        threads = str(max(1, available_cores() // self.jobs))
        found = dict(os.environ)
        found |= dict.fromkeys(_THREADS, threads)
        found["KERAS_BACKEND"] = "tensorflow"
        return found

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Passes the first signal on; the trainings make their snapshots."""

        def stop(number, frame):
            self._stopping.set()
            for process in list(self._processes):
                process.send_signal(signal.SIGTERM)

        numbers = [signal.SIGINT, signal.SIGTERM]
        # That of a terminal that closes, unless `nohup` keeps it off.
        hangup = getattr(signal, "SIGHUP", None)
        if hangup and signal.getsignal(hangup) != signal.SIG_IGN:
            numbers.append(hangup)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _signal(number: int) -> str:
    hint = ", perhaps as there was too little memory" if number == 9 else ""
    return f"ended by signal {number}{hint}"


def _last(log: Path, begin: int) -> str:
    """The last line that says something, of those that are new."""
    text = log.read_bytes()[begin:].decode("utf-8", errors="replace")
    lines = text.splitlines()
    told = [line.strip() for line in lines if line.strip()]
    return told[-1] if told else "it wrote nothing"
