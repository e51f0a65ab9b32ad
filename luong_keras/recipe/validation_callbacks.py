"""Callbacks that validate a training run after each epoch."""

import functools
from collections.abc import Sequence

import keras

from luong_keras.config import RunConfig
from luong_keras.evaluation.metrics.registry import Metric
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.recipe.decisions import run_metric
from luong_keras.recipe.devices import Devices
from luong_keras.recipe.evaluation import with_progress
from luong_keras.recipe.stored_settings import with_absolute_word_lists
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.epoch_logs import JsonLinesLog, TranslationValidation
from luong_keras.training.run_folder import RunFolder


def validation_callbacks(
    translation_model,
    tokenizers,
    pairs: Sequence[tuple[str, str]],
    config: RunConfig,
    run: RunFolder,
    devices: Devices,
    metric: Metric,
) -> tuple[TranslationValidation, list[keras.callbacks.Callback]]:
    """Return the callbacks that translate and score after each epoch.

    Only the first process translates; its score counts in all processes. If
    the metric does not score translations, BLEU does.

    Returns:
        The validation callback, and the callbacks that log an epoch after all
        other callbacks; none of the latter in other processes.
    """
    sources, references = zip(*pairs, strict=True)
    if metric.score is None:
        metric = run_metric(config, references, "bleu")
    assert metric.score is not None
    if not devices.writes:
        # The writing process sends the score.
        callback = TranslationValidation(
            list,
            sources,
            references,
            lambda ours, theirs: 0.0,
            metric.key,
            samples=0,
            agree=devices.from_first,
        )
        return callback, []
    decoding = with_absolute_word_lists(config, run).decoding
    greedy = decoding.with_(
        search="beam", beam_size=1, stack_size=None, shortlist=None
    )
    translator_class: type = JaxTranslator if devices.on_jax else TextTranslator
    translator = translator_class(
        translation_model, *tokenizers, greedy, *preprocessors(config.data)
    )
    callback = TranslationValidation(
        functools.partial(
            with_progress,
            translator.translate,
            what=f"validation {metric.title or metric.name}",
        ),
        sources,
        references,
        metric.score,
        metric.key,
        samples=config.training.samples,
        output_folder=run.samples,
        agree=devices.from_first,
    )
    return callback, [
        JsonLinesLog(run.log),
        keras.callbacks.TensorBoard(run.tensorboard),
    ]
