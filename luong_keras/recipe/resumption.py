"""Checks of the settings with which a run is resumed."""

from __future__ import annotations

import dataclasses

from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import config_from_dict, config_to_dict
from luong_keras.files.json_file import read_json, write_json
from luong_keras.ops.devices import decided
from luong_keras.recipe.run_settings import run_config
from luong_keras.recipe.run_word_lists import as_written
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
    model = dataclasses.replace(
        config.model,
        source_vocabulary_size=old.model.source_vocabulary_size,
        target_vocabulary_size=old.model.target_vocabulary_size,
    )
    run.check_config(
        config_to_dict(dataclasses.replace(config, model=model)),
        MAY_CHANGE,
        _DEFAULTS,
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
    model = dataclasses.replace(config.model, precision=chosen)
    return dataclasses.replace(config, model=model)


def trained_epochs(run: RunFolder) -> int:
    """The number of finished epochs."""
    return len(JsonLinesLog(run.log).read())


def write_config(config: RunConfig, run: RunFolder) -> None:
    """Writes the settings with which the run continues from here."""
    run.write_config(
        config_to_dict(as_written(config, run)), MAY_CHANGE, _DEFAULTS
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
        == as_written(config, run).decoding
    )


def mark_finished(config: RunConfig, run: RunFolder) -> None:
    """Notes what was scored and exported."""
    found = {
        "epochs": config.training.epochs,
        "trained": trained_epochs(run),
        "weights": config.training.final_weights,
        "decoding": config_to_dict(as_written(config, run).decoding),
    }
    write_json(run.finished, found)
