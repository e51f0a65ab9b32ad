"""Resumption of a run: its checks, and the records of its sessions and end."""

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
from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import (
    config_from_dict,
    config_to_dict,
    leaf_values,
    with_values,
)
from luong_keras.evaluation.metrics.registry import AUTO
from luong_keras.files.atomic_file import (
    json_lines,
    read_json,
    read_json_lines,
    write_json,
    write_text,
)
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.devices import Devices, device_names
from luong_keras.recipe.stored_settings import (
    run_config,
    with_kept_pairs,
    word_list_checksums,
)
from luong_keras.recipe.vocabularies import requested_sizes
from luong_keras.tables import pluralize
from luong_keras.text.threads import available_cores
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.run_folder import RunFolder

# Between two records: a killed call loses at most this time.
_RECORD_SECONDS = 10
_LANGUAGES = ("data.source_language", "data.target_language")
_SIZES = ("model.source_vocabulary_size", "model.target_vocabulary_size")
# The settings that a continued run may change. All other settings determine
# the weights: a run that changed them halfway could not be reproduced.
MAY_CHANGE = (
    # More epochs continue a run, even a finished one. No learning rate depends
    # on the number of epochs.
    "training.epochs",
    # The batches are the same, divided into as many parts as memory requires.
    # Rounding and dropout differ, as they do between devices.
    "training.gradient_accumulation_steps",
    "training.parallel_microbatches",
    # How many steps are lost if a run is killed.
    "training.snapshot_steps",
    # The same pairs are left out; only the share that is an error changes.
    "data.max_skipped",
    # The text does not depend on the number of processes that prepare it.
    "data.processes",
    # How many translations are shown.
    "training.samples",
    # How many epochs' weights are kept.
    "training.keep",
    # Epochs without improvement are counted with or without a patience: with
    # more patience, an ended run continues as if it had begun with it.
    "training.patience",
    # With other final weights, the run is scored and exported again.
    "training.final_weights",
    # Training does not use the search. The remaining epochs are validated with
    # the new search, and the test set is translated again.
    "decoding",
)


def resumed_settings(config: RunConfig, run: RunFolder) -> RunConfig:
    """Return the settings with which a run that has begun continues.

    Decisions of the run stay where the settings leave them open: the
    languages, the precision, the metric, and the sizes of the vocabularies,
    which may differ from the requested ones.

    Args:
        config: The settings.
        run: The folder of the run.

    Raises:
        ValueError: If the run cannot continue with them, with the full name
            of each setting that differs.
    """
    new, old = (
        leaf_values(config_to_dict(settings))
        for settings in (config, run_config(run.path, resolve_paths=False))
    )
    kept = [name for name in _LANGUAGES if not new[name]]
    if new["model.precision"] == "auto":
        kept.append("model.precision")
    metric = new["training.metric"]
    if metric == AUTO or old["training.metric"].startswith(f"{metric}:"):
        kept.append("training.metric")
    requested = requested_sizes(run)
    is_unknown = requested is None and old["training.init_from"] is None
    # Other sizes than the requested ones are refused.
    if is_unknown or requested == tuple(new[name] for name in _SIZES):
        kept.extend(_SIZES)
    decided = {name: old[name] for name in kept}
    new |= decided
    free = tuple(f"{name}." for name in MAY_CHANGE)
    differences = [
        f"{name}: {old[name]!r} → {new[name]!r}"
        for name in sorted(new)
        if with_kept_pairs(old[name], run) != with_kept_pairs(new[name], run)
        and not f"{name}.".startswith(free)
    ]
    if differences:
        raise ValueError(
            "A run must keep the configuration that it began with, in "
            f"{str(run.config)!r} except for {', '.join(MAY_CHANGE)}. Received "
            f"a different one: {'; '.join(differences)}. Omit these settings "
            "to continue, or use a new folder for a new run."
        )
    trained = trained_epochs(run)
    if config.training.epochs < trained:
        raise ValueError(
            f"The run {str(run.path)!r} has been trained for "
            f"{pluralize(trained, 'epoch')}, which cannot be taken back. "
            f"Expected: training.epochs of at least {trained}. Received: "
            f"{config.training.epochs}. Use a new folder for a shorter run."
        )
    return with_values(config, decided)


def trained_epochs(run: RunFolder) -> int:
    """Count the finished epochs."""
    return len(JsonLinesLog(run.log).read())


def print_epochs(config: RunConfig, run: RunFolder) -> None:
    """Print where the run continues, and if its rate is never halved."""
    training = config.training
    if run.snapshot.exists():
        done = f"{trained_epochs(run)} of {training.epochs} epochs are done"
        print(f"the run continues from its last snapshot; {done}")
    # The last first_halved_epoch with a halving before the run's last batch.
    last, when = training.epochs, "from epoch {} on"
    if training.halving == "after_epoch" and training.halvings_per_epoch == 1:
        last, when = last - 1, "after epoch {}"
    if training.halving in ("start", "after_epoch") and (
        training.first_halved_epoch > last
    ):
        print(
            f"the learning rate stays {training.learning_rate:g}: it is halved "
            f"{when.format(training.first_halved_epoch)} "
            f"(training.first_halved_epoch), of {training.epochs} epochs"
        )


def is_finished(config: RunConfig, run: RunFolder) -> bool:
    """Test whether an earlier call did this call's scoring and export.

    Call this after the training, which may have added epochs.
    """
    if not run.finished.exists():
        return False
    record = read_json(
        run.finished,
        "what was scored and exported",
        "Remove it: the run is scored and exported again.",
    )
    checksums = word_list_checksums(config, run)
    return (
        record.get("epochs") == config.training.epochs
        # Earlier versions wrote none.
        and record.get("word_lists", checksums) == checksums
        and record.get("trained") == trained_epochs(run)
        and record.get("weights") == config.training.final_weights
        and config_from_dict(record.get("decoding", {}), DecodingConfig)
        == config.decoding
    )


def mark_finished(config: RunConfig, run: RunFolder) -> None:
    """Record what was scored and exported."""
    record = {
        "epochs": config.training.epochs,
        "trained": trained_epochs(run),
        "weights": config.training.final_weights,
        "decoding": config_to_dict(config.decoding),
        "word_lists": word_list_checksums(config, run),
    }
    write_json(run.finished, record)


@contextlib.contextmanager
def record_session(
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
    software = this_machine["software"]
    for line in before[-1:]:
        earlier = line.get("machine", {}).get("software", software)
        if earlier != software:
            print(f"the run continues with {software}; before, with {earlier}")
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
            write_text(path, json_lines([*before, line]))

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
    with contextlib.suppress(AttributeError, OSError, ValueError):  # Windows
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return f"{pages / 1e9:.0f} GB"
    return ""
