"""What is told of a training after each epoch, and where."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import keras

from luong_keras.config import RunConfig
from luong_keras.evaluation.bleu import corpus_bleu
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.inference.text_translator import TextTranslator
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
) -> tuple[TranslationValidation, list[keras.callbacks.Callback]]:
    """Translates after each epoch in the first process, for all of them.

    Returns:
        The callback that does so, and those that write what has come of the
        epoch, when all others have added to it: none in other processes.
    """
    sources, references = zip(*dev, strict=True)
    if not devices.writes:
        # It is told the score.
        told = TranslationValidation(
            list,
            sources,
            references,
            lambda ours, theirs: 0.0,
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
            what="validation BLEU",
        ),
        sources,
        references,
        functools.partial(corpus_bleu, lowercase=config.data.lowercase),
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


def shown_progress(run: RunFolder, dev) -> TrainingProgress:
    """What shows the state of the run, which may have begun before.

    Args:
        run: its folder.
        dev: the batches of the validation.
    """
    scores = [line.get("val_bleu") for line in JsonLinesLog(run.log).read()]
    return TrainingProgress(
        best=max((s for s in scores if s is not None), default=None),
        validation_batches=int(dev.cardinality()),
    )
