"""Sessions of a run: the time and the machine of each call that trains it."""

import contextlib
import datetime
import importlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keras

import luong_keras
from luong_keras.files.json_lines import read_json_lines, write_json_lines
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.devices import Devices, device_names
from luong_keras.text.threads import available_cores

# Between two records: a killed call loses at most this time.
_RECORD_SECONDS = 10


@contextlib.contextmanager
def session(
    path: Path, devices: Devices, steps: Callable[[], int]
) -> Iterator[Callable[[], None]]:
    """Keep one line of a file up to date about this call's training.

    Args:
        path: The file.
        devices: The devices of the run.
        steps: Returns the number of steps of this call; no line is written
            before the first step.

    Yields:
        A function that writes the line, at most every ten seconds. Call it
        after each step, so that a killed call leaves a line, too.
    """
    no_link(path, in_place=True)
    began, start = datetime.datetime.now(datetime.UTC), time.monotonic()
    before = read_json_lines(path, appended=True)
    this_machine = describe_machine(devices)
    last = start - _RECORD_SECONDS

    def write(at_once: bool = False) -> None:
        nonlocal last
        now = time.monotonic()
        if steps() and (at_once or now - last >= _RECORD_SECONDS):
            last = now
            line = {
                "steps": steps(),
                "began": began.isoformat(timespec="seconds"),
                "seconds": round(now - start, 1),
                "machine": this_machine,
            }
            write_json_lines(path, [*before, line])

    try:
        yield write
    finally:
        write(at_once=True)


def describe_machine(devices: Devices) -> dict[str, str]:
    """Describe the hardware and software, without host names."""
    backend = keras.backend.backend()
    names = ("keras", backend)
    # The metadata may be those of another package, such as tensorflow-cpu.
    modules = [(name, importlib.import_module(name)) for name in names]
    versions = [f"{name} {module.__version__}" for name, module in modules]
    facts = {
        "processor": f"{_processor_name()}, {available_cores()} cores",
        "memory": _memory_size(),
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
    return {name: text for name, text in facts.items() if text}


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory_size() -> str:
    with contextlib.suppress(OSError, ValueError):
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return f"{pages / 1e9:.0f} GB"
    return ""
