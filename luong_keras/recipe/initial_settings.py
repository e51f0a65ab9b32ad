"""Initial settings of a run, and what its text decides."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from luong_keras.config import DataConfig, RunConfig
from luong_keras.config.values import LEAVES, convert_values, with_values
from luong_keras.data.text_files import (
    is_columns,
    list_sources,
    read_text,
    requested_columns,
    suffix_languages,
    text_sources,
)
from luong_keras.evaluation.metrics.bleu import language_of_script
from luong_keras.presets import PRESETS, TINY_PAIRS, for_user_text, preset_for
from luong_keras.recipe.fine_tuning import (
    RESET_SETTINGS,
    inherited_settings,
)
from luong_keras.recipe.stored_settings import run_config
from luong_keras.tables import pluralize
from luong_keras.training.run_folder import RunFolder

_SCRIPT_LINES = 1000  # lines of each source from which the script is detected
# Settings of a fine-tuned run that do not belong to its text.
_FINE_TUNING = ("training.frozen", "data.new_words")


def settings_beside_text(
    values: Mapping[str, Any], text: Mapping[str, Any], has_text: bool
) -> dict[str, Any]:
    """Return the settings of a file that is given beside a text.

    A file that names a text of its own has settings of that text.

    Args:
        values: The settings of the file, by their full names.
        text: Settings that the given text implies and a file may override.
        has_text: Whether a text is given.
    """
    is_run = values.keys() >= LEAVES.keys()  # the settings of another run
    if not has_text or not (is_run or values.get("data.train")):
        return {**text, **values}
    if is_run:
        kept = {name: values[name] for name in _FINE_TUNING}
        values = {**values, **RESET_SETTINGS, **language_settings(None, None)}
        values |= kept
        print(
            "--config is of another run: the languages, columns, metric, "
            "limits of length and word lists of its text are not used"
        )
    return {**values, **text}


def initial_settings(
    values: Mapping[str, Any], run: RunFolder | None, preset: str | None = None
) -> tuple[str | None, RunConfig]:
    """Return the settings of a run before those that the user gives.

    A run that has begun keeps its settings, unless a preset is named. A run
    with `training.init_from` has the model of its parent run. Otherwise the
    size of the user's text chooses the preset, which is printed; without text
    it is `demo`.

    Args:
        values: The user's settings, which name the text.
        run: The folder of the run, or None.
        preset: The name of a preset.

    Returns:
        The name of the preset, None for a run that has begun, and the
        settings.
    """
    given = convert_values(values)
    init_from = given.get("training.init_from")
    continues = preset is None or init_from is not None
    if continues and run is not None and run.config.exists():
        return None, run_config(run.path, resolve_paths=False)
    if init_from is not None:
        base = None if preset is None else for_user_text(PRESETS[preset])
        return preset or "small", inherited_settings(init_from, base)
    if given.get("data.train") is None:
        return preset or "demo", PRESETS[preset or "demo"]
    if preset is not None:
        return preset, for_user_text(PRESETS[preset])
    data = with_values(for_user_text(PRESETS["small"]), given).data
    assert data.train is not None  # given
    sources = text_sources(
        data.train, requested_columns(data), data.weights is not None
    )
    lengths = [
        sum(len(side) for side in pair if side)
        for pair in itertools.islice(read_text(sources, True), TINY_PAIRS)
    ]
    pairs = len(lengths)
    name, sizes = preset_for(pairs, sum(lengths))
    if data.tokenizer == "words":
        sizes = {}  # Only subword vocabularies have a recommended size.
    at_least = "at least " * (pairs == TINY_PAIRS)
    flags = "".join(f" --set {key}={size}" for key, size in sizes.items())
    print(
        f"{at_least}{pluralize(pairs, 'training pair')}: --preset {name}{flags}"
    )
    return name, for_user_text(with_values(PRESETS[name], sizes))


def language_settings(
    source: str | None, target: str | None
) -> dict[str, str | None]:
    """Return the settings of both languages, by their full names."""
    return {"data.source_language": source, "data.target_language": target}


def decide_languages(config: RunConfig) -> RunConfig:
    """Return settings with languages that are detected from the text.

    Named data sets have known languages. Of files, the languages in the
    suffixes of a source and a target file decide, or those that name the
    columns, so that further files are read in the same direction; otherwise
    the script of the first lines. A language stays None if the script does not
    determine it.
    """
    data = config.data
    languages = [data.source_language, data.target_language]
    has_parent = config.training.init_from is not None
    # The text is prepared by the rules of the parent run.
    if None not in languages or (has_parent and has_language_rules(data)):
        return config
    is_prefix = isinstance(data.train, str) and not is_columns(data.train)
    if data.dataset != "files" or is_prefix:
        return with_values(config, language_settings(*data.languages))
    if data.train is None:
        return config  # Reading the text raises the error.
    weighted = data.weights is not None
    requested = requested_columns(data)
    named = suffix_languages(list_sources(data.train, weighted))
    if named is not None and languages == [None, None]:
        requested = dataclasses.replace(requested, languages=named)
    sources = text_sources(data.train, requested, weighted)
    named = named or next(
        filter(None, (source.languages for source in sources)), None
    )
    if named is not None and languages == [None, None]:
        return with_values(config, language_settings(*named))
    pairs = [
        pair
        for source in sources
        for pair in itertools.islice(read_text([source], True), _SCRIPT_LINES)
        if None not in pair
    ]
    for side, name in enumerate(language_settings(None, None)):
        if languages[side] is None:
            languages[side] = language_of_script(pair[side] for pair in pairs)
            if languages[side] is not None:
                print(f"{name} is {languages[side]}, by the text's script")
    return with_values(config, language_settings(*languages))


def has_language_rules(data: DataConfig) -> bool:
    """Test whether the preparation of text depends on its languages."""
    return data.tokenize or data.normalize_punctuation
