"""Measured process, which runs the steps of one program on request.

    python -m speed.worker '{"make": "torch_model:training", "arguments": …}'

`make` names a function that returns a `Work`. The process answers with a line
of JSON when the program is built. Each number of steps on its standard input
requests a run, after which the process answers with another line.
"""

import json
import os
import platform
import sys
import time
from importlib import import_module, metadata
from typing import NamedTuple

PACKAGES = (
    "tensorflow",
    "tensorflow_addons",
    "keras",
    "jax",
    "torch",
    "joeynmt",
    "pymarian",
    "numpy",
)


class Work(NamedTuple):
    """Program that is ready to run.

    Attributes:
        run: Function of a number of steps, which completes them and
            returns a dict of results, such as the last loss.
        parameters: Number of parameters of the model, if meaningful.
    """

    run: object
    parameters: int | None = None


def timed(work, steps):
    """Run some steps; return the times, the memory and the results."""
    before = resident_megabytes("VmRSS")
    reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    results = work.run(steps)
    measured = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "resident": before,
        "peak": resident_megabytes("VmHWM"),
        "card": peak_on_card(),
    }
    # A program that starts other programs reports their times.
    return measured | results


def resident_megabytes(field, process="self"):
    """Return a field of a process's Linux status in MB; None elsewhere."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def reset_peak():
    """Reset the peak of resident memory."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
            control.write("5")
    except OSError:
        pass


def peak_on_card():
    """Return the peak bytes of the library on a GPU, or 0 without one."""
    torch = sys.modules.get("torch")
    if torch is not None:
        held = torch.cuda.is_available() and torch.cuda.max_memory_allocated()
        return int(held)
    backend = os.environ.get("KERAS_BACKEND")
    if backend == "tensorflow" and "tensorflow" in sys.modules:
        config = sys.modules["tensorflow"].config
        if not config.list_logical_devices("GPU"):
            return 0
        return config.experimental.get_memory_info("GPU:0")["peak"]
    # If Keras only imported JAX, using it here would reserve the card.
    if backend != "jax":
        return 0
    found = sys.modules["jax"].local_devices()[0].memory_stats() or {}
    return found.get("peak_bytes_in_use", 0)


def described():
    """Return the versions and threads of the loaded packages."""
    loaded = [name for name in PACKAGES if name in sys.modules]
    versions = {
        name: metadata.version(name.replace("_", "-")) for name in loaded
    }
    threads = {"cores": available_cores()}
    if "torch" in loaded:
        torch = sys.modules["torch"]
        threads["torch threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            threads["card"] = torch.cuda.get_device_name()
    if "tensorflow" in loaded:
        threads["tensorflow threads"] = os.environ.get(
            "TF_NUM_INTRAOP_THREADS", "all"
        )
    return {
        "versions": {"python": platform.python_version(), **versions},
        "threads": threads,
    }


def available_cores():
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def pin(cores):
    """Restrict this process to the first `cores` of its cores."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:cores])


def main() -> None:
    """Build the program and serve the driver until its input ends."""
    job = json.loads(sys.argv[1])
    # Prints of libraries must not mix with the answers.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if job["cores"]:
        pin(job["cores"])
    module, _, function = job["make"].partition(":")
    make = getattr(import_module(f"speed.{module}"), function)
    work = make(**job["arguments"])
    answer = {"parameters": work.parameters, **described()}
    print(json.dumps(answer), file=channel, flush=True)
    for steps in sys.stdin:
        answer = timed(work, int(steps))
        print(json.dumps(answer), file=channel, flush=True)
    # Do not wait for the threads of an unfinished trainer.
    os._exit(0)


if __name__ == "__main__":
    main()
