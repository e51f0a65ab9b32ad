"""From the settings of a run to its folder."""

from __future__ import annotations

import os
from pathlib import Path

import keras

from luong_keras.config import RunConfig, config_to_dict
from luong_keras.data.datasets import load_datasets
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.preparation import (
    fit_vocabulary_sizes,
    prepare_corpus,
    prepare_tokenizers,
)
from luong_keras.recipe.report import is_reported, report
from luong_keras.recipe.training import train
from luong_keras.training.run_folder import RunFolder


def run_recipe(config: RunConfig, run_dir: str | Path) -> None:
    """Trains, scores and exports, as far as the folder has not come yet.

    Args:
        config: the settings.
        run_dir: the folder of the run; one that was interrupted goes on.
    """
    # TensorFlow would return the memory of every step to the system.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    run = RunFolder(run_dir)
    keras.utils.set_random_seed(config.training.seed)

    datasets = load_datasets(config.data)
    corpus = prepare_corpus(datasets, config, run)
    tokenizers = prepare_tokenizers(corpus, config, run)
    config = fit_vocabulary_sizes(config, *tokenizers)
    run.write_config(config_to_dict(config))
    translation_model = TranslationModel(
        config.model, config.training.label_smoothing
    )
    translation_model.model.summary()

    finished = train(
        translation_model, tokenizers, corpus, datasets, config, run
    )
    if finished and is_reported(run):
        print(f"{run.path} is finished: scored in results.jsonl, exported")
    elif finished:
        report(datasets, config, run)
