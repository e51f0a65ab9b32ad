"""The settings of a run and its word lists, read without Keras.

The word lists of a run, a dictionary and a shortlist, are in its folder.
"""

from __future__ import annotations

from pathlib import Path

from luong_keras.alignment.dictionary import read_dictionary, read_lexicon
from luong_keras.config import RunConfig
from luong_keras.config.values import config_from_dict, with_values
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import safe_join
from luong_keras.training.run_folder import RunFolder

# The search settings that name a file, and the function that reads it. Each
# is also the name of an attribute of `RunFolder`.
_READERS = {"dictionary": read_dictionary, "shortlist": read_lexicon}


def copy_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """Copy the word lists of the search settings into the run folder.

    Returns:
        The settings, with the paths of the copies.

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if a file is malformed.
    """
    for name, read in _READERS.items():
        given = getattr(config.decoding, name)
        if given is None:
            continue
        path, own = Path(given), getattr(run, name)
        # The name may come from the written settings of this run.
        if given == own.name and (own.is_file() or not path.is_file()):
            inside = safe_join(run.path, given)
            if path.is_file() and path.read_bytes() != inside.read_bytes():
                raise ValueError(
                    f"decoding.{name}={given} may be {own}, or {path.resolve()}"
                    ", which is different. Expected: "
                    f"decoding.{name}={own} or decoding.{name}=./{given}."
                )
            path = inside
        read(path)
        if path.resolve() != own.resolve():
            run.path.mkdir(parents=True, exist_ok=True)
            write_text(own, path.read_text(encoding="utf-8"))
        config = with_values(config, {f"decoding.{name}": str(own)})
    return config


def with_relative_paths(config: RunConfig, run: RunFolder) -> RunConfig:
    """Return settings with paths relative to the run folder."""
    for name in _READERS:
        own = getattr(run, name)
        if getattr(config.decoding, name) == str(own):
            config = with_values(config, {f"decoding.{name}": own.name})
    return config


def own_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """Return settings with the full paths of word lists in the run folder.

    Raises:
        ValueError: if a word list is outside the run folder.
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
                f"{run.config}, decoding.{name}: {error} A run may read only "
                "files in its folder, because it may come from somebody "
                f"else. If you trust the file, copy it to {own} and write "
                f'"{name}": "{own.name}" into {run.config}; or pass it in '
                "Python: Translator.from_run(..., "
                f"decoding=DecodingConfig({name}=...))."
            ) from None
        config = with_values(config, {f"decoding.{name}": str(path)})
    return config


def run_config(folder: str | Path, own_files: bool = True) -> RunConfig:
    """Read the settings of a run.

    Args:
        folder: the folder of the run.
        own_files: whether to resolve the paths of the word lists, which must
            be in the folder; otherwise the paths stay as written, and must
            not be read.

    Raises:
        FileNotFoundError: if the folder holds no run.
        ValueError: if the configuration is damaged, or names a word list
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
