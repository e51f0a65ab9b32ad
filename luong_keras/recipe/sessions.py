"""When and where a run was trained: a line for every call."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keras

import luong_keras
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.devices import Devices, device_names
from luong_keras.text.threads import available_cores

_SECONDS = 10  # of a call that is killed, as many at most have no record


@contextlib.contextmanager
def session(
    path: Path, devices: Devices, steps: Callable[[], int]
) -> Iterator[Callable[[], None]]:
    """Adds a line about a training run in progress.

    Args:
        path: the file.
        devices: those of the run.
        steps: how many this call has made; without one there is no line.

    Yields:
        What writes the line so far, at most every ten seconds, to be called
        after every step: a call that is killed has a line too.
    """
    no_link(path, in_place=True)
    began, start = datetime.datetime.now(datetime.UTC), time.monotonic()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    this_machine = machine(devices)
    last = start - _SECONDS

    def write(at_once: bool = False) -> None:
        nonlocal last
        now = time.monotonic()
        if steps() and (at_once or now - last >= _SECONDS):
            last = now
            line = {
                "steps": steps(),
                "began": began.isoformat(timespec="seconds"),
                "seconds": round(now - start, 1),
                "machine": this_machine,
            }
            text = json.dumps(line, ensure_ascii=False)
            write_text(path, f"{before}{text}\n")

    try:
        yield write
    finally:
        write(at_once=True)


def machine(devices: Devices) -> dict[str, str]:
    """Hardware and software of this process, without host names."""
    backend = keras.backend.backend()
    names = ("keras", backend)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
    found = {
        "processor": f"{_processor()}, {available_cores()} cores",
        "memory": _memory(),
        "devices": ", ".join(device_names(devices)),
        "processes": str(devices.world),
        "system": f"{platform.system()} {platform.machine()}",
        "software": ", ".join(
            [
                f"luong_keras {luong_keras.__version__}",
                *versions,
                f"Python {platform.python_version()}",
            ]
        ),
    }
    return {name: text for name, text in found.items() if text}


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    with contextlib.suppress(OSError, ValueError):
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return f"{pages / 1e9:.0f} GB"
    return ""
