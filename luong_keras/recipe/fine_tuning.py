"""Fine-tuning: a run that begins with the weights of another run.

The other run is the parent. Its model, its vocabularies and the preparation of
its text are kept, since the weights have a meaning only with them.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import itertools
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luong_keras.config import RunConfig
from luong_keras.config.values import (
    config_to_dict,
    leaf_values,
    with_values,
)
from luong_keras.files.atomic_file import atomic_path, read_json, write_json
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.run_settings import run_config
from luong_keras.suggestions import did_you_mean
from luong_keras.training.run_folder import RunFolder

if TYPE_CHECKING:
    import keras

    from luong_keras.models.translation_model import TranslationModel

# Settings of the text that the weights depend on.
_TEXT = (
    "data.source_language",
    "data.target_language",
    "data.tokenizer",
    "data.joint_vocabulary",
    "data.lowercase",
    "data.normalize_punctuation",
    "data.tokenize",
    "data.pretokenized",
)
# Settings of the model that weights do not depend on.
_FREE = (
    "model.dropout",
    "model.dropout_style",
    "model.initial_range",
    "model.precision",
)
# Files that the new run has from its parent.
_KEPT = ("*_vocabulary.*", "LICEN[CS]E*", "NOTICE*")
# Settings of the parent's own text and search.
_RESET = {
    "data.columns": None,
    "data.weights": None,
    "data.train_size": None,
    "data.new_words": 0,
    "decoding.max_length_ratio": None,
    "decoding.max_length_offset": None,
    "decoding.dictionary": None,
    "decoding.shortlist": None,
    "training.frozen": (),
}
_SIZES = ("source_vocabulary_size", "target_vocabulary_size")


def inherited_settings(
    init_from: str | Path, base: RunConfig | None = None
) -> RunConfig:
    """The initial settings of a run that begins with another run's weights.

    Args:
        init_from: the folder of the parent, or one of its weight files.
        base: the settings of training and search, those of the parent when
            None.

    Returns:
        The settings, with the model and the text preparation of the parent.

    Raises:
        FileNotFoundError: where there is no such run or file.
        ValueError: where it is no training run.
    """
    parent, _ = _find_parent(init_from)
    old = run_config(parent.path, own_files=False)
    if base is None:
        return with_values(old, _RESET)
    values = leaf_values(config_to_dict(old))
    kept = {name: values[name] for name in (*_TEXT, *_model_names(values))}
    return with_values(base, kept)


def prepare_initial_weights(config: RunConfig, run: RunFolder) -> None:
    """Copies the initial weights into the folder of a new run.

    From then on the run does not read its parent.

    Raises:
        FileNotFoundError: where there is no such run or file.
        ValueError: where settings differ from those of the parent on which
            its weights depend; each is named.
    """
    if config.training.init_from is None or run.config.exists():
        return
    parent, weights = _find_parent(config.training.init_from)
    old = leaf_values(config_to_dict(run_config(parent.path, False)))
    new = leaf_values(config_to_dict(config))
    different = [
        f"{name}: {old[name]!r} → {new[name]!r}"
        for name in (*_TEXT, *_model_names(old))
        if name not in _FREE and old[name] != new[name]
    ]
    if different:
        raise ValueError(
            "The weights of training.init_from belong to the settings that "
            f"they were trained with, those in {str(parent.config)!r}. "
            f"Received others: {'; '.join(different)}. Leave them out; "
            "data.new_words adds words."
        )
    run.path.mkdir(parents=True, exist_ok=True)
    write_json(
        run.parent,
        {
            "run": str(parent.path.resolve()),
            "weights": weights.name,
            "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
            "data": read_json(parent.data, "a hash of the data", ""),
            **{name: old[f"model.{name}"] for name in _SIZES},
        },
    )
    for file in itertools.chain(*map(parent.path.glob, _KEPT)):
        if not file.is_file():  # a folder LICENSES
            continue
        with atomic_path(run.path / file.name) as temporary:
            shutil.copyfile(no_link(file), temporary)
    with atomic_path(run.initial_weights) as temporary:
        shutil.copyfile(weights, temporary)


def load_initial_weights(
    translation_model: TranslationModel, run: RunFolder
) -> None:
    """Gives a model the weights that `prepare_initial_weights` has copied.

    Rows of new words keep their own initial values.
    """
    import numpy as np
    from keras import ops

    from luong_keras.models.translation_model import TranslationModel
    from luong_keras.training.weight_files import load_weights

    if not run.initial_weights.exists():
        return
    found = read_json(run.parent, "the parent of the run", "Use a new folder.")
    model = translation_model.model
    sizes = {name: found[name] for name in _SIZES}
    old = dataclasses.replace(translation_model.config, **sizes)
    if old == translation_model.config:
        load_weights(model, run.initial_weights)
        return
    small = TranslationModel(old).model
    load_weights(small, run.initial_weights)
    for variable, given in zip(model.weights, small.weights, strict=True):
        values = np.array(ops.convert_to_numpy(variable))
        values[tuple(map(slice, given.shape))] = ops.convert_to_numpy(given)
        variable.assign(values)


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Excludes weights from training by the patterns of their paths.

    Args:
        model: the model.
        patterns: such as `"encoder"`, for all that is in it, or
            `"*/bias*"`; as of file names.

    Raises:
        ValueError: for a pattern of no weight, or where none is left.

    Example:
        >>> import keras
        >>> inputs, dense = keras.Input((2,)), keras.layers.Dense(1, name="top")
        >>> model = keras.Model(inputs, dense(inputs))
        >>> freeze(model, ["*/bias"])
        >>> [variable.path for variable in model.trainable_variables]
        ['top/kernel']
    """
    weights = model.weights
    for pattern in patterns:
        found = [
            weight
            for weight in weights
            if fnmatch.fnmatchcase(weight.path, pattern)
            or fnmatch.fnmatchcase(weight.path, f"{pattern}/*")
        ]
        if not found:
            names = sorted({weight.path.split("/")[0] for weight in weights})
            raise ValueError(
                "A pattern of training.frozen must fit weights, which are in "
                f"{', '.join(names)}. Received: {pattern!r}."
                f"{did_you_mean(pattern, names)}"
            )
        for weight in found:
            weight.trainable = False
    if not model.trainable_variables:
        raise ValueError(
            "training.frozen must leave weights to train. Received: "
            f"{', '.join(map(repr, patterns))}, which is all of them."
        )


def _find_parent(init_from: str | Path) -> tuple[RunFolder, Path]:
    """The folder of a run and the file of its weights."""
    path = Path(init_from)
    if (path / "saved_model.pb").exists():
        raise ValueError(
            "training.init_from is the folder of a training run, or a file of "
            f"its weights. Received: {str(path)!r}, an export, which has no "
            "training settings. Name the run that was exported."
        )
    if not path.name.endswith(".weights.h5"):
        run = RunFolder(path)
        settings = run_config(path, own_files=False)
        return run, run.weights(settings.training.final_weights)
    if not no_link(path).exists():
        raise FileNotFoundError(
            f"Expected: the weights {path}. Received: no such file."
        )
    folder = path.parent
    return RunFolder(
        folder.parent if folder.name == "checkpoints" else folder
    ), path


def _model_names(values: Iterable[str]) -> list[str]:
    return [name for name in values if name.startswith("model.")]
