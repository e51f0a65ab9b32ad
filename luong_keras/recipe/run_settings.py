"""Reads the settings of a run, without Keras."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from luong_keras.config import RunConfig
from luong_keras.config.values import config_from_dict
from luong_keras.recipe.run_word_lists import own_word_lists
from luong_keras.training.run_folder import RunFolder


def run_config(folder: str | Path, own_files: bool = True) -> RunConfig:
    """The settings of a run.

    Args:
        folder: of the run.
        own_files: whether the dictionary and the shortlist must lie in the
            folder, and their paths are those of the files; otherwise they are
            as they were written, and not to be read.

    Raises:
        FileNotFoundError: where there is no run.
        ValueError: where its configuration is damaged, or names such a file
            outside the folder.
    """
    if not Path(folder).is_dir():
        raise FileNotFoundError(
            "Expected: the folder of a training run. Received: "
            f"{folder}, which does not exist."
        )
    run = RunFolder(folder)
    values = run.read_config()
    try:
        config = config_from_dict(values)
    except ValueError as error:
        raise ValueError(f"{run.config}: {error}") from None
    if not own_files:
        return config
    return dataclasses.replace(
        config, decoding=own_word_lists(config.decoding, run)
    )
