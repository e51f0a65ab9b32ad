"""Settings of a run and its word lists, as its folder has them.

The word lists are a dictionary and a shortlist. No module of Keras is needed.
"""

import zlib
from pathlib import Path
from typing import Any

from luong_keras.alignment.dictionary import read_dictionary, read_lexicon
from luong_keras.config import RunConfig
from luong_keras.config.values import (
    config_from_dict,
    with_values,
    without_removed,
)
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import safe_join
from luong_keras.files.text_lines import read_lines
from luong_keras.training.run_folder import RunFolder

# The search settings that name a file, and the function that reads it. Each
# is also the name of an attribute of `RunFolder`.
_READERS = {"dictionary": read_dictionary, "shortlist": read_lexicon}


def _word_lists(config: RunConfig) -> dict[str, str]:
    """Return the settings that name a word list."""
    return {
        name: setting
        for name, setting in vars(config.decoding).items()
        if name in _READERS and setting is not None
    }


def copy_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """Copy the word lists of the search settings into the run folder.

    Returns:
        The settings, with the names of the copies in the folder.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a file is malformed.
    """
    for name, setting in _word_lists(config).items():
        path, copy_path = Path(setting), getattr(run, name)
        # The name may come from the written settings of this run.
        if setting == copy_path.name and (
            copy_path.is_file() or not path.is_file()
        ):
            inner_path = safe_join(run.path, setting)
            if path.is_file() and _lines(path) != _lines(inner_path):
                raise ValueError(
                    f"decoding.{name}={setting} may be {copy_path}, or "
                    f"{path.resolve()}, which is different. Expected: "
                    f"decoding.{name}={copy_path} or "
                    f"decoding.{name}=./{setting}."
                )
            path = inner_path
        _READERS[name](path)
        if path.resolve() != copy_path.resolve():
            write_text(copy_path, _lines(path))
        config = with_values(config, {f"decoding.{name}": copy_path.name})
    return config


def _lines(path: Path) -> str:
    """Return the lines of a word list, which may be compressed."""
    return "".join(f"{line}\n" for line in read_lines(path))


def word_list_checksums(config: RunConfig, run: RunFolder) -> dict[str, int]:
    """Return a checksum of each word list of a run, by its setting."""
    return {
        name: zlib.crc32(getattr(run, name).read_bytes())
        for name in _word_lists(config)
    }


def with_absolute_word_lists(config: RunConfig, run: RunFolder) -> RunConfig:
    """Return settings with the full paths of word lists in the run folder.

    Raises:
        ValueError: If a word list is outside the run folder.
    """
    for name, setting in _word_lists(config).items():
        try:
            path = safe_join(run.path, setting)
        except ValueError as error:
            copy_path = getattr(run, name)
            raise ValueError(
                f"{run.config}, decoding.{name}: {error} A run may read only "
                "files in its folder, because it may come from somebody else. "
                f"If you trust the file, copy it to {copy_path} and write "
                f'"{name}": "{copy_path.name}" into {run.config}; or pass it '
                "in Python: Translator.from_run(..., "
                f"decoding=DecodingConfig({name}=...))."
            ) from None
        config = with_values(config, {f"decoding.{name}": str(path)})
    return config


def with_kept_pairs(value: Any, run: RunFolder) -> Any:
    """Return a setting with the present paths of the pairs in the run folder.

    The folder of the run may have moved, or be named in another way.
    """
    if isinstance(value, tuple | list):
        return tuple(with_kept_pairs(item, run) for item in value)
    if isinstance(value, str) and Path(value).parent.name == run.pairs.name:
        path = run.pairs / Path(value).name
        return str(path) if path.exists() else value
    return value


def run_config(folder: str | Path, *, resolve_paths: bool = True) -> RunConfig:
    """Read the settings of a run.

    Args:
        folder: The folder of the run.
        resolve_paths: Whether to resolve the paths of the word lists, which
            must be in the folder; otherwise the paths stay as written, and
            must not be read.

    Raises:
        FileNotFoundError: If the folder holds no run.
        ValueError: If the configuration is damaged, or names a word list
            outside the folder.
    """
    if not Path(folder).is_dir():
        problem = "is a file" if Path(folder).exists() else "does not exist"
        raise FileNotFoundError(
            "Expected: the folder of a training run. Received: "
            f"{folder}, which {problem}."
        )
    run = RunFolder(folder)
    values = without_removed(run.read_config(), run.config)
    try:
        config = config_from_dict(values)
    except ValueError as error:
        raise ValueError(
            f"{run.config}: {error} Correct the setting in this file, or use "
            "the version of luong_keras that began the run."
        ) from None
    return with_absolute_word_lists(config, run) if resolve_paths else config
