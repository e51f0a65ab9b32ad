"""From the settings of a run to its folder."""

from __future__ import annotations

import os
from pathlib import Path

import keras

from luong_keras.config import RunConfig
from luong_keras.data.datasets import load_datasets
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.preparation import (
    fit_vocabulary_sizes,
    prepare_corpus,
    prepare_tokenizers,
)
from luong_keras.recipe.report import report
from luong_keras.recipe.resumption import (
    check_resumable,
    is_finished,
    mark_finished,
    write_config,
)
from luong_keras.recipe.training import train
from luong_keras.training.run_folder import RunFolder


def run_recipe(config: RunConfig, run_dir: str | Path) -> bool:
    """Trains, scores and exports, as far as the folder has not come yet.

    Args:
        config: the settings.
        run_dir: the folder of the run; one that was interrupted goes on, and
            one that is finished too, where `config` has more epochs.

    Returns:
        False where a signal stopped the run before its end.

    Raises:
        ValueError: where the folder has a run of other settings.
    """
    # TensorFlow would return the memory of every step to the system.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    run = RunFolder(run_dir)
    check_resumable(config, run)
    keras.utils.set_random_seed(config.training.seed)

    datasets = load_datasets(config.data)
    corpus = prepare_corpus(datasets, config, run)
    tokenizers = prepare_tokenizers(corpus, config, run)
    config = fit_vocabulary_sizes(config, *tokenizers)
    write_config(config, run)
    translation_model = TranslationModel(
        config.model, config.training.label_smoothing
    )
    translation_model.model.summary()

    if not train(translation_model, tokenizers, corpus, datasets, config, run):
        return False
    if is_finished(config, run):
        print(f"{run.path} is finished: scored in results.jsonl, exported")
        return True
    report(datasets, config, run)
    mark_finished(config, run)
    print(run.tree())
    return True
