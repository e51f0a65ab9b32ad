"""What is told of a training after each epoch, and where."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import keras

from luong_keras.config import RunConfig
from luong_keras.evaluation.metrics.metric import Metric
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.recipe.decisions import run_metric
from luong_keras.recipe.devices import Devices
from luong_keras.recipe.in_steps import in_steps
from luong_keras.recipe.tensorboard_samples import TensorBoardSamples
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.json_lines_log import JsonLinesLog
from luong_keras.training.run_folder import RunFolder
from luong_keras.training.training_progress import TrainingProgress
from luong_keras.training.translation_validation import TranslationValidation


def validation(
    translation_model,
    tokenizers,
    dev: Sequence[tuple[str, str]],
    config: RunConfig,
    run: RunFolder,
    devices: Devices,
    metric: Metric,
) -> tuple[TranslationValidation, list[keras.callbacks.Callback]]:
    """Translates after each epoch in the first process, for all of them.

    Where the metric is no score of translations, they are scored by BLEU.

    Returns:
        The callback that does so, and those that write what has come of the
        epoch, when all others have added to it: none in other processes.
    """
    sources, references = zip(*dev, strict=True)
    if metric.score is None:
        metric = run_metric(config, references, "bleu")
    assert metric.score is not None
    if not devices.writes:
        # It is told the score.
        told = TranslationValidation(
            list,
            sources,
            references,
            lambda ours, theirs: 0.0,
            metric.key,
            samples=0,
            agree=devices.from_first,
        )
        return told, []
    greedy = config.decoding.with_(beam_size=1, stack_size=None)
    kind: type = JaxTranslator if devices.on_jax else TextTranslator
    translator = kind(
        translation_model, *tokenizers, greedy, *preprocessors(config.data)
    )
    validated = TranslationValidation(
        functools.partial(
            in_steps,
            translator.translate,
            size=greedy.batch_size,
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
    return validated, [
        JsonLinesLog(run.log),
        keras.callbacks.TensorBoard(
            run.tensorboard, histogram_freq=config.training.histograms or 0
        ),
        TensorBoardSamples(run.tensorboard / "samples", validated, translator),
    ]


def shown_progress(run: RunFolder, dev, metric: Metric) -> TrainingProgress:
    """What shows the state of the run, which may have begun before.

    Args:
        run: its folder.
        dev: the batches of the validation.
        metric: what its epochs are compared by.
    """
    scores = [line.get(metric.key) for line in JsonLinesLog(run.log).read()]
    better = max if metric.mode == "max" else min
    return TrainingProgress(
        metric.key,
        better((s for s in scores if s is not None), default=None),
        validation_batches=int(dev.cardinality()),
        mode=metric.mode,
        title=metric.title or metric.name,
    )
