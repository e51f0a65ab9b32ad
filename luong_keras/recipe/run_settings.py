"""Reads the settings of a run and its word lists, without Keras.

The dictionary and the shortlist of a run lie in its folder.
"""

from __future__ import annotations

from pathlib import Path

from luong_keras.alignment.dictionary import read_dictionary, read_lexicon
from luong_keras.config import RunConfig
from luong_keras.config.values import config_from_dict, with_values
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import safe_join
from luong_keras.training.run_folder import RunFolder

# The settings of a search that name a file, and what reads it. A folder has
# it under the same name.
_READERS = {"dictionary": read_dictionary, "shortlist": read_lexicon}


def copy_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """Copies the files that the search names into the folder.

    Returns:
        The settings, with the copies in their place.

    Raises:
        FileNotFoundError: where there is no such file.
        ValueError: where it is not what it should be.
    """
    for name, read in _READERS.items():
        given = getattr(config.decoding, name)
        if given is None:
            continue
        path, own = Path(given), getattr(run, name)
        # The settings of this very run, as they were written.
        if given == own.name and not path.is_file():
            path = safe_join(run.path, given)
        read(path)
        if path.resolve() != own.resolve():
            run.path.mkdir(parents=True, exist_ok=True)
            write_text(own, path.read_text(encoding="utf-8"))
        config = with_values(config, {f"decoding.{name}": str(own)})
    return config


def with_relative_paths(config: RunConfig, run: RunFolder) -> RunConfig:
    """The settings with files of the folder named within it."""
    for name in _READERS:
        own = getattr(run, name)
        if getattr(config.decoding, name) == str(own):
            config = with_values(config, {f"decoding.{name}": own.name})
    return config


def own_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """The settings of the folder, with word lists that are its own.

    Raises:
        ValueError: where one of them lies elsewhere.
    """
    for name in _READERS:
        given = getattr(config.decoding, name)
        if given is None:
            continue
        try:
            path = safe_join(run.path, given)
        except ValueError as error:
            own = getattr(run, name)
            raise ValueError(
                f"{run.config}, decoding.{name}: {error} A run may read what "
                "lies in its folder only, for it may come from somebody "
                f"else. If you know the file, copy it to {own} and write "
                f'"{name}": "{own.name}" into {run.config}; or pass it in '
                "Python: Translator.from_run(..., "
                f"decoding=DecodingConfig({name}=...))."
            ) from None
        config = with_values(config, {f"decoding.{name}": str(path)})
    return config


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
    return own_word_lists(config, run) if own_files else config
