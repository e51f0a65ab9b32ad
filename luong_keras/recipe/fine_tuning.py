"""Fine-tuning: a run that begins with the weights of its parent run.

The run keeps the model, the vocabularies and the text preparation of its
parent, because the weights are meaningful only with them.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luong_keras.config import RunConfig, TrainingConfig
from luong_keras.config.values import (
    LEAVES,
    config_to_dict,
    leaf_values,
    with_values,
)
from luong_keras.files.atomic_file import atomic_path, read_json, write_json
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.stored_settings import run_config
from luong_keras.suggestions import did_you_mean
from luong_keras.training.run_folder import RunFolder

if TYPE_CHECKING:
    import keras

    from luong_keras.models.translation_model import TranslationModel

_LANGUAGES = ("data.source_language", "data.target_language")
# The settings of the parent that a run has, too: those of the model, and those
# of the text that the weights depend on.
_INHERITED = (
    *_LANGUAGES,
    "data.tokenizer",
    "data.joint_vocabulary",
    "data.lowercase",
    "data.normalize_punctuation",
    "data.tokenize",
    "data.pretokenized",
    *(name for name in LEAVES if name.startswith("data.sentencepiece.")),
    *(name for name in LEAVES if name.startswith("model.")),
)
# Settings of the model that weights do not depend on.
_FREE_SETTINGS = (
    "model.dropout",
    "model.dropout_style",
    "model.initial_range",
    "model.precision",
)
# Files that are copied from the parent run.
_COPIED_FILES = ("*_vocabulary.*", "LICEN[CS]E*", "NOTICE*")
# Settings of the parent's text and search, reset in the new run. The parent's
# metric may have been chosen for its text.
RESET_SETTINGS = {
    "data.train": None,
    "data.dev": None,
    "data.test": None,
    "data.columns": None,
    "data.weights": None,
    "data.train_size": None,
    "data.new_words": 0,
    "decoding.min_length_ratio": 0.0,
    "decoding.max_length_ratio": None,
    "decoding.max_length_offset": None,
    "decoding.dictionary": None,
    "decoding.shortlist": None,
    "training.frozen": (),
    "training.metric": TrainingConfig.metric,
}
VOCABULARY_SIZES = ("source_vocabulary_size", "target_vocabulary_size")
# The folder in `assets.extra` through which an export can be a parent.
_PARENT_FOLDER = "parent"
_WEIGHT_NAMES_FILE = "weights.json"


def inherited_settings(
    init_from: str | Path, base: RunConfig | None = None
) -> RunConfig:
    """Return the initial settings of a run that begins with a parent run.

    Args:
        init_from: The folder of the parent, one of its weight files, or its
            export.
        base: The settings for the rest, such as training and search; those
            of the parent when None.

    Returns:
        The settings, with the model and the text preparation of the parent.

    Raises:
        FileNotFoundError: If the run or the file does not exist.
        ValueError: If `init_from` is not a training run.
    """
    parent, _ = _find_parent(init_from)
    old = run_config(parent.path, resolve_paths=False)
    if base is None:
        return with_values(old, RESET_SETTINGS)
    values = leaf_values(config_to_dict(old))
    names = [name for name in _INHERITED if name not in _FREE_SETTINGS]
    return with_values(base, {name: values[name] for name in names})


def prepare_initial_weights(config: RunConfig, run: RunFolder) -> None:
    """Copy the initial weights into the folder of a new run.

    Afterwards the run no longer reads its parent.

    Raises:
        FileNotFoundError: If the run or the file does not exist.
        ValueError: If settings that the weights depend on differ from those
            of the parent; each is named.
    """
    if config.training.init_from is None:
        # An earlier call with a parent was stopped before its run began.
        if run.parent.exists():
            for path in (
                run.source_vocabulary,
                run.target_vocabulary,
                run.initial_weights,
                run.parent,
            ):
                path.unlink(missing_ok=True)
        return
    parent, weights = _find_parent(config.training.init_from)
    old = leaf_values(
        config_to_dict(run_config(parent.path, resolve_paths=False))
    )
    new = leaf_values(config_to_dict(config))
    free_settings = set(_FREE_SETTINGS)
    if not (old["data.tokenize"] or old["data.normalize_punctuation"]):
        # Without them a language that the parent does not know means nothing.
        free_settings |= {n for n in _LANGUAGES if old[n] is None}
    different = [
        f"{name}: {old[name]!r} → {new[name]!r}"
        for name in _INHERITED
        if name not in free_settings and old[name] != new[name]
    ]
    if different:
        raise ValueError(
            "The weights of training.init_from belong to the settings that "
            f"they were trained with, those in {str(parent.config)!r}. "
            f"Received others: {'; '.join(different)}. Leave them out; "
            "data.new_words adds words."
        )
    write_json(
        run.parent,
        {
            "run": str(parent.path.resolve()),
            "weights": weights.name,
            "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
            "data": read_json(parent.data, "a hash of the data", ""),
            **{name: old[f"model.{name}"] for name in VOCABULARY_SIZES},
        },
    )
    for file in _files_to_copy(parent):
        with atomic_path(run.path / file.name) as temporary:
            shutil.copyfile(file, temporary)
    if weights.name.endswith(".weights.h5"):
        with atomic_path(run.initial_weights) as temporary:
            shutil.copyfile(weights, temporary)
    else:
        _copy_exported_weights(parent, run.initial_weights)


def parent_files(
    folder: str | Path, translation_model: TranslationModel
) -> dict[str, bytes]:
    """Return the files through which an export can be a parent run.

    These are the settings of the run without the paths of its text, the names
    of its weights, the hash of its data, its vocabularies and its licences.

    Args:
        folder: The folder of the run that is exported.
        translation_model: The model, which names the weights.

    Returns:
        Contents by their names in `assets.extra`, for `export_saved_model`.
    """
    run = RunFolder(folder)
    config = with_values(
        run_config(folder, resolve_paths=False),
        {**RESET_SETTINGS, "training.init_from": None},
    )
    names = [weight.path for weight in translation_model.model.weights]
    files = {
        run.config.name: json.dumps(config_to_dict(config)).encode(),
        _WEIGHT_NAMES_FILE: json.dumps({"paths": names}).encode(),
    }
    for file in filter(Path.is_file, (run.data, *_files_to_copy(run))):
        files[file.name] = file.read_bytes()
    return {
        f"{_PARENT_FOLDER}/{name}": content for name, content in files.items()
    }


def load_initial_weights(
    translation_model: TranslationModel, run: RunFolder
) -> None:
    """Load the weights that `prepare_initial_weights` has copied.

    Rows of new words keep their random initial values. Those that
    `training.frozen` excludes from training are printed.
    """
    import numpy as np
    from keras import ops

    from luong_keras.models.translation_model import TranslationModel
    from luong_keras.training.weight_files import load_weights

    if not no_link(run.initial_weights).exists():
        return
    parent = read_json(run.parent, "the parent of the run", "Use a new folder.")
    model = translation_model.model
    sizes = {name: parent[name] for name in VOCABULARY_SIZES}
    old = dataclasses.replace(translation_model.config, **sizes)
    if old == translation_model.config:
        load_weights(model, run.initial_weights)
        return
    small_model = TranslationModel(old).model
    load_weights(small_model, run.initial_weights)
    for variable, initial in zip(
        model.weights, small_model.weights, strict=True
    ):
        values = np.array(ops.convert_to_numpy(variable))
        values[tuple(map(slice, initial.shape))] = ops.convert_to_numpy(initial)
        variable.assign(values)
        if initial.shape != variable.shape and not variable.trainable:
            print(
                f"{variable.path}: the rows of new words stay random, because "
                "training.frozen excludes them from training"
            )


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Exclude weights from training by patterns of their paths.

    Args:
        model: The model.
        patterns: Patterns as for file names, such as `"*/bias*"`; `"encoder"`
            matches all weights of the encoder.

    Raises:
        ValueError: If a pattern matches no weight, or no weight is left.

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
        matches = [
            weight
            for weight in weights
            if fnmatch.fnmatchcase(weight.path, pattern)
            or fnmatch.fnmatchcase(weight.path, f"{pattern}/*")
        ]
        if not matches:
            paths = [weight.path for weight in weights]
            part = pattern.split("/")[0]
            names = [path for path in paths if path.startswith(f"{part}/")]
            names = names or sorted({path.split("/")[0] for path in paths})
            raise ValueError(
                "A pattern of training.frozen must fit weights or parts of "
                f"the model. Expected: one of {', '.join(names)}. Received: "
                f"{pattern!r}."
                f"{did_you_mean(pattern, names)}"
            )
        for weight in matches:
            weight.trainable = False
    if not model.trainable_variables:
        raise ValueError(
            "training.frozen must leave weights to train. Received: "
            f"{', '.join(map(repr, patterns))}, which is all of them."
        )


def _find_parent(init_from: str | Path) -> tuple[RunFolder, Path]:
    """Find the folder of a run, or inside its export, and its weights."""
    path = Path(init_from)
    if (path / "saved_model.pb").exists():
        run = RunFolder(path / "assets.extra" / _PARENT_FOLDER)
        if not run.config.exists():
            raise ValueError(
                "training.init_from is the folder of a training run, a file "
                "of its weights, or an export of one run. Received: "
                f"{str(path)!r}, an export without its settings: that of an "
                "ensemble or of an older version. Name the run that was "
                "exported."
            )
        return run, path / "variables" / "variables.data-00000-of-00001"
    if not path.name.endswith(".weights.h5"):
        run = RunFolder(path)
        settings = run_config(path, resolve_paths=False)
        return run, run.weights(settings.training.final_weights)
    if not no_link(path).exists():
        raise FileNotFoundError(
            f"Expected: the weights {path}. Received: no such file."
        )
    folder = path.parent
    return RunFolder(
        folder.parent if folder.name == "checkpoints" else folder
    ), path


def _files_to_copy(run: RunFolder) -> list[Path]:
    """List the vocabulary and licence files of a run, without folders."""
    paths = itertools.chain(*map(run.path.glob, _COPIED_FILES))
    return [no_link(path) for path in paths if path.is_file()]


def _copy_exported_weights(parent: RunFolder, path: Path) -> None:
    """Write the weights of an export as a Keras weight file."""
    from luong_keras.models.translation_model import TranslationModel
    from luong_keras.serving.export import exported_weights
    from luong_keras.training.weight_files import save_weights

    model = TranslationModel(
        run_config(parent.path, resolve_paths=False).model
    ).model
    exported = exported_weights(parent.path.parents[1])
    names = read_json(
        parent.path / _WEIGHT_NAMES_FILE, "paths of weights", "Export anew."
    )
    for weight, name in itertools.zip_longest(model.weights, names["paths"]):
        values = exported.get(name)
        if weight is None or values is None or weight.shape != values.shape:
            expected = weight is not None and f"{weight.path} {weight.shape}"
            received = values is not None and f"{name} {values.shape}"
            raise ValueError(
                "The weights of the export given as training.init_from are not "
                "those of its settings: Python code has changed its model, "
                "such as with `enable_lora`. Expected: "
                f"{expected or 'no more'}. Received: {received or 'no more'}. "
                "Write the weights into the folder of the run, "
                "model.save_weights('RUN/changed.weights.h5'), which merges "
                "LoRA's, and name this file."
            )
        weight.assign(values)
    save_weights(model, path)
