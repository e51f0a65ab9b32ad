"""Settings of a run that are chosen when it begins, and kept."""

import itertools
from collections.abc import Sequence
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config.values import with_values
from luong_keras.data.text_files import (
    is_columns,
    read_text,
    requested_columns,
    text_sources,
)
from luong_keras.evaluation.metrics.bleu import language_of_script, target_of
from luong_keras.evaluation.metrics.registry import (
    AUTO,
    Metric,
    choose_metric,
    find_metric,
)
from luong_keras.ops.devices import resolve_precision
from luong_keras.recipe.stored_settings import run_config
from luong_keras.recipe.user_text import language_settings
from luong_keras.recipe.vocabularies import requested_sizes
from luong_keras.training.run_folder import RunFolder

_LANGUAGES = ("source_language", "target_language")
_SCRIPT_LINES = 1000  # lines of each source from which the script is detected


def restore_decisions(config: RunConfig, run: RunFolder) -> RunConfig:
    """Return settings with the decisions of a run that has begun.

    These are the languages, the sizes of the vocabularies, which may be
    smaller than the settings, the precision and the metric.
    """
    old = run_config(run.path, resolve_paths=False)
    values: dict[str, Any] = {
        f"data.{name}": getattr(config.data, name) or getattr(old.data, name)
        for name in _LANGUAGES
    }
    names = ("source_vocabulary_size", "target_vocabulary_size")
    sizes = tuple(getattr(config.model, name) for name in names)
    requested = requested_sizes(run)
    is_unknown = requested is None and old.training.init_from is None
    # Other sizes than the requested ones are refused later.
    if is_unknown or requested == sizes:
        for name in names:
            values[f"model.{name}"] = getattr(old.model, name)
    if config.model.precision == "auto":
        values["model.precision"] = old.model.precision
    metric, before = config.training.metric, old.training.metric
    if metric == AUTO or before.startswith(f"{metric}:"):
        values["training.metric"] = before
    return with_values(config, values)


def decide_precision(config: RunConfig) -> RunConfig:
    """Return the settings with a measured precision in place of `"auto"`."""
    precision = resolve_precision(config.model.precision)
    return with_values(config, {"model.precision": precision})


def decide_languages(config: RunConfig) -> RunConfig:
    """Return settings with languages that are detected from the text.

    Named data sets and files with language suffixes have known languages. For
    other files, languages that name the columns decide, if they are not the
    default ones, so that further files are read in the same direction;
    otherwise the script of the first lines. A language stays None if the
    script does not determine it.
    """
    data = config.data
    languages = [data.source_language, data.target_language]
    if None not in languages:
        return config
    is_prefix = isinstance(data.train, str) and not is_columns(data.train)
    if data.dataset != "files" or is_prefix:
        return with_values(config, language_settings(*data.languages))
    if data.train is None:
        return config  # Reading the text raises the error.
    sources = text_sources(
        data.train, requested_columns(data), data.weights is not None
    )
    column_languages = next(
        filter(None, (source.languages for source in sources)), None
    )
    if (
        column_languages is not None
        and column_languages != data.languages
        and languages == [None, None]
    ):
        return with_values(config, language_settings(*column_languages))
    pairs = [
        pair
        for source in sources
        for pair in itertools.islice(read_text([source], True), _SCRIPT_LINES)
        if None not in pair
    ]
    for side, name in enumerate(_LANGUAGES):
        if languages[side] is None:
            languages[side] = language_of_script(pair[side] for pair in pairs)
            if languages[side] is not None:
                print(f"data.{name} is {languages[side]}, by the text's script")
    return with_values(config, language_settings(*languages))


def decide_metric(config: RunConfig, references: Sequence[str]) -> RunConfig:
    """Return settings with the metric of the run.

    Args:
        config: The settings, with the languages.
        references: The references of the validation.
    """
    metric, message = choose_metric(
        config.training.metric, target_of(config.data, references)
    )
    print(message)
    return with_values(config, {"training.metric": metric.setting})


def run_metric(
    config: RunConfig,
    references: Sequence[str] = (),
    setting: str | None = None,
) -> Metric:
    """Return the metric of a run, or another metric for its text.

    Args:
        config: The settings, with the languages.
        references: The references of the text, to detect its script.
        setting: The setting of another metric.

    Raises:
        ValueError: If the metric is not registered.
        ImportError: If the package of the metric is missing.
    """
    setting = setting or config.training.metric
    return find_metric(setting, target_of(config.data, references))
