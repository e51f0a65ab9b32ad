"""From the settings of a run to its folder."""

from __future__ import annotations

import contextlib
import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import keras

from luong_keras.config import RunConfig
from luong_keras.files.folder_lock import locked
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.preparation import (
    fit_vocabulary_sizes,
    prepare_text,
    prepare_tokenizers,
)
from luong_keras.recipe.report import report
from luong_keras.recipe.resumption import (
    check_resumable,
    is_finished,
    mark_finished,
    write_config,
)
from luong_keras.recipe.training import train
from luong_keras.training.mirrored import mirrored
from luong_keras.training.run_folder import RunFolder


def run_recipe(
    config: RunConfig,
    run_dir: str | Path,
    stop_after: float | None = None,
    strategy: str | None = None,
    devices: int | None = None,
) -> bool:
    """Trains, scores and exports, as far as the folder has not come yet.

    Args:
        config: the settings.
        run_dir: the folder of the run; one that was interrupted goes on, and
            one that is finished too, where `config` has more epochs.
        stop_after: seconds after which the training stops, as by a signal,
            with a snapshot.
        strategy: `"mirrored"` trains on several devices of this machine, each
            with a share of every batch; a run may go on with another number.
        devices: how many, see `luong_keras.training.mirrored`.

    Returns:
        False where the run was stopped before its end.

    Raises:
        ValueError: where the folder has a run of other settings.
        FolderInUseError: where another process works in the folder.
    """
    deadline = None if stop_after is None else time.monotonic() + stop_after
    # TensorFlow would return the memory of every step to the system.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    # Before TensorFlow is used, which then has the devices that it has.
    shared = _scope(strategy, devices)
    run = RunFolder(run_dir)
    with locked(run.path):
        return _run(config, run, deadline, shared)


def _scope(
    strategy: str | None, devices: int | None
) -> AbstractContextManager[Any]:
    """Where the model is made and trained."""
    if strategy == "mirrored":
        return mirrored(devices).scope()
    if strategy is not None or devices is not None:
        raise ValueError(
            "Expected: for several devices strategy='mirrored'. Received: "
            f"strategy={strategy!r}, devices={devices}."
        )
    return contextlib.nullcontext()


def _run(
    config: RunConfig,
    run: RunFolder,
    deadline: float | None,
    shared: AbstractContextManager[Any],
) -> bool:
    check_resumable(config, run)
    keras.utils.set_random_seed(config.training.seed)
    datasets, corpus = prepare_text(config, run)
    tokenizers = prepare_tokenizers(corpus, config, run)
    config = fit_vocabulary_sizes(config, *tokenizers)
    write_config(config, run)
    with shared:
        translation_model = TranslationModel(
            config.model, config.training.label_smoothing
        )
        translation_model.model.summary()

        parts = (translation_model, tokenizers, corpus, datasets, config, run)
        if not train(*parts, deadline=deadline):
            return False
    if is_finished(config, run):
        print(f"{run.path} is finished: scored in results.jsonl, exported")
        return True
    report(datasets, config, run)
    mark_finished(config, run)
    print(run.tree())
    return True
