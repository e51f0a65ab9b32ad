"""Reads the settings of a run, without Keras."""

from __future__ import annotations

from pathlib import Path

from luong_keras.config import RunConfig
from luong_keras.config_values import config_from_dict
from luong_keras.training.run_folder import RunFolder


def run_config(folder: str | Path) -> RunConfig:
    """The settings of a run.

    Raises:
        FileNotFoundError: where there is no run.
        ValueError: where its configuration is damaged.
    """
    if not Path(folder).is_dir():
        raise FileNotFoundError(
            "Expected: the folder of a training run. Received: "
            f"{folder}, which does not exist."
        )
    run = RunFolder(folder)
    values = run.read_config()
    try:
        return config_from_dict(values)
    except ValueError as error:
        raise ValueError(f"{run.config}: {error}") from None
