"""The dictionary of a run, which lies in its folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from luong_keras.alignment.dictionary import read_dictionary
from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.files.atomic_file import write_text
from luong_keras.files.inside import inside
from luong_keras.training.run_folder import RunFolder


def bring_in(config: RunConfig, run: RunFolder) -> RunConfig:
    """Copies the dictionary that the settings name into the folder.

    Returns:
        The settings, with the copy in its place.

    Raises:
        FileNotFoundError: where there is no such file.
        ValueError: where it is no dictionary.
    """
    given = config.decoding.dictionary
    if given is None:
        return config
    path = Path(given)
    # The settings of this very run, as they were written.
    if given == run.dictionary.name and not path.is_file():
        path = inside(run.path, given)
    read_dictionary(path)
    if path.resolve() != run.dictionary.resolve():
        run.path.mkdir(parents=True, exist_ok=True)
        write_text(run.dictionary, path.read_text(encoding="utf-8"))
    return _with_dictionary(config, str(run.dictionary))


def as_written(config: RunConfig, run: RunFolder) -> RunConfig:
    """The settings with a dictionary of the folder named within it."""
    if config.decoding.dictionary != str(run.dictionary):
        return config
    return _with_dictionary(config, run.dictionary.name)


def own_dictionary(decoding: DecodingConfig, run: RunFolder) -> DecodingConfig:
    """The search that the folder names, with a dictionary that is its own.

    Raises:
        ValueError: where the dictionary lies elsewhere.
    """
    if decoding.dictionary is None:
        return decoding
    try:
        path = inside(run.path, decoding.dictionary)
    except ValueError as error:
        name = run.dictionary.name
        raise ValueError(
            f"{run.config}, decoding.dictionary: {error} A run may read what "
            "lies in its folder alone, for it may come from somebody else. If "
            f"you know the file, copy it to {run.dictionary} and write "
            f'"dictionary": "{name}" into {run.config}; or pass it in Python: '
            "Translator.from_run(..., decoding=DecodingConfig(dictionary=...))."
        ) from None
    return dataclasses.replace(decoding, dictionary=str(path))


def _with_dictionary(config: RunConfig, path: str) -> RunConfig:
    decoding = dataclasses.replace(config.decoding, dictionary=path)
    return dataclasses.replace(config, decoding=decoding)
