"""Resumption of a run: its checks, and the record of its sessions."""

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
from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import (
    config_from_dict,
    config_to_dict,
    with_values,
)
from luong_keras.files.atomic_file import read_json, write_json, write_text
from luong_keras.files.path_checks import no_link
from luong_keras.ops.devices import decided
from luong_keras.recipe.devices import Devices, device_names
from luong_keras.recipe.run_settings import run_config, with_relative_paths
from luong_keras.text.threads import available_cores
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.run_folder import RunFolder

# Everything else decides the weights, so that a run that continues with it
# changed would be no run that can be repeated.
MAY_CHANGE = (
    # More: a run continues, a finished one too. No rate depends on the last.
    "training.epochs",
    # The batches are the same, in as many parts as the memory asks for; sums
    # round otherwise, and dropout draws otherwise, as on other devices.
    "training.gradient_accumulation_steps",
    "training.parallel_microbatches",
    # How much is lost where a run is killed.
    "training.snapshot_steps",
    # Whether a run that was stopped for a NaN continues without that batch.
    "training.max_skipped",
    # What is left out is the same; more of it is looked at or not.
    "data.max_skipped",
    # The text is the same, however many prepare it.
    "data.processes",
    # How many translations are shown.
    "training.samples",
    # How many epochs' weights stay; those that an average needs always do.
    "training.keep",
    # The epochs that it counts are counted without it, too: a run that has
    # ended continues where it is more now, as if it had been so at first.
    "training.patience",
    # What is scored and exported: another choice does that again.
    "training.final_weights",
    # The weights are trained on given translations; the epochs to come are
    # validated by the new search, and the test set is translated again.
    "decoding",
)

# Of settings that a run does not have: they came later.
_DEFAULTS = config_to_dict(RunConfig())
_SECONDS = 10  # of a call that is killed, as many at most have no record


def check_resumable(config: RunConfig, run: RunFolder) -> None:
    """Checks that a run, if there is one, can continue with these settings.

    Raises:
        ValueError: where it cannot, with the full name of every setting
            that differs.
    """
    if not run.config.exists():
        return
    old = run_config(run.path, own_files=False)
    # A text may have fewer words than were asked for.
    sizes = {
        "model.source_vocabulary_size": old.model.source_vocabulary_size,
        "model.target_vocabulary_size": old.model.target_vocabulary_size,
    }
    run.check_config(
        config_to_dict(with_values(config, sizes)), MAY_CHANGE, _DEFAULTS
    )
    trained = trained_epochs(run)
    if config.training.epochs < trained:
        raise ValueError(
            f"The run {str(run.path)!r} has been trained for {trained} "
            "epochs, which cannot be taken back. Expected: training.epochs "
            f"of at least {trained}. Received: {config.training.epochs}. Use "
            "a new folder for a shorter run."
        )


def decide_precision(config: RunConfig, run: RunFolder) -> RunConfig:
    """The settings with a precision for `"auto"`.

    It is measured where the run begins; one that continues, on whatever
    machine, and in every process, keeps what was chosen.
    """
    if config.model.precision != "auto":
        return config
    if run.config.exists():
        chosen = run_config(run.path, own_files=False).model.precision
    else:
        chosen = decided(config.model.precision)
    return with_values(config, {"model.precision": chosen})


def trained_epochs(run: RunFolder) -> int:
    """The number of finished epochs."""
    return len(JsonLinesLog(run.log).read())


def print_epochs(config: RunConfig, run: RunFolder) -> None:
    """Print where the run continues, and that its rate is never halved."""
    training = config.training
    if run.snapshot.exists():
        done = f"{trained_epochs(run)} of {training.epochs} epochs are done"
        print(f"the run continues from its last snapshot; {done}")
    last = training.epochs - (training.halving == "after_epoch")
    if training.halving in ("start", "after_epoch") and (
        training.first_halved_epoch > last
    ):
        print(
            f"the learning rate stays {training.learning_rate:g}: it is halved "
            f"from epoch {training.first_halved_epoch} on "
            f"(training.first_halved_epoch), of {training.epochs} epochs"
        )


def write_config(config: RunConfig, run: RunFolder) -> None:
    """Writes the settings with which the run continues from here."""
    run.write_config(
        config_to_dict(with_relative_paths(config, run)), MAY_CHANGE, _DEFAULTS
    )


def is_finished(config: RunConfig, run: RunFolder) -> bool:
    """Whether an earlier call scored and exported just what this one would.

    To be asked after the training, which may have continued.
    """
    if not run.finished.exists():
        return False
    found = read_json(
        run.finished,
        "what was scored and exported",
        "Remove it: the run is scored and exported again.",
    )
    return (
        found["epochs"] == config.training.epochs
        and found.get("trained") == trained_epochs(run)
        and found.get("weights") == config.training.final_weights
        and config_from_dict(found["decoding"], DecodingConfig)
        == with_relative_paths(config, run).decoding
    )


def mark_finished(config: RunConfig, run: RunFolder) -> None:
    """Notes what was scored and exported."""
    found = {
        "epochs": config.training.epochs,
        "trained": trained_epochs(run),
        "weights": config.training.final_weights,
        "decoding": config_to_dict(with_relative_paths(config, run).decoding),
    }
    write_json(run.finished, found)


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
