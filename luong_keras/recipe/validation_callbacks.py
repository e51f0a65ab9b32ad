"""Callbacks that validate a training run after each epoch."""

import functools
import html
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from luong_keras.config import RunConfig
from luong_keras.evaluation.metrics.metric import Metric
from luong_keras.evaluation.plots import alignment_image
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import (
    Translation,
    best_of,
    in_order,
    sentences_by_place,
    translations_of,
)
from luong_keras.recipe.decisions import run_metric
from luong_keras.recipe.devices import Devices
from luong_keras.recipe.evaluation import with_progress
from luong_keras.recipe.stored_settings import with_absolute_word_lists
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.epoch_logs import JsonLinesLog, TranslationValidation
from luong_keras.training.run_folder import RunFolder
from luong_keras.with_tensorflow import tf


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
    greedy = decoding.with_(search="beam", beam_size=1, stack_size=None)
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
        TensorBoardSamples(run.tensorboard / "samples", callback, translator),
    ]


class TensorBoardSamples(keras.callbacks.Callback):
    """Samples of the validation, written for TensorBoard after each epoch.

    TensorBoard shows the translations next to their references as text, and
    their attention weights as images. Images are written only after epochs
    1, 2, 4, 8 and so on and after the last, since TensorBoard shows ten images
    per name. The step is the epoch, from 0, as in Keras' TensorBoard callback.

    Args:
        folder: The log folder of TensorBoard.
        validation: The validation callback; it precedes this callback.
        translator: The translator of the validation.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        validation: TranslationValidation,
        translator: TextTranslator | JaxTranslator,
    ) -> None:
        super().__init__()
        self.folder = os.fspath(folder)
        self.validation = validation
        self.translator = translator
        self._writer: Any = None

    def on_epoch_end(
        self, epoch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Write the samples."""
        indices = self.validation.sample_indices()
        if not indices:
            return
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self.folder)
        with self._writer.as_default(step=epoch):
            tf.summary.text("translations", self._markdown_table(indices))
            number, last = epoch + 1, (self.params or {}).get("epochs")
            is_last = number == last or self.model.stop_training
            if self.translator.translation_model.has_attention and (
                number.bit_count() == 1 or is_last
            ):
                self._write_images(epoch, indices)
        self._writer.flush()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _markdown_table(self, indices: Sequence[int]) -> str:
        """Return the samples as a Markdown table."""
        validation = self.validation
        rows = ["| source | reference | translation |", "| --- " * 3 + "|"]
        for index in indices:
            cells = (
                validation.sources[index],
                validation.references[index],
                validation.translations[index],
            )
            rows.append(f"| {' | '.join(map(_escape_markdown, cells))} |")
        return "\n".join(rows)

    def _write_images(self, epoch: int, indices: Sequence[int]) -> None:
        sources = [self.validation.sources[index] for index in indices]
        translations = _best_translations(self.translator, sources)
        for number, (source, best) in enumerate(
            zip(sources, translations, strict=True), start=1
        ):
            if not best.tokens or not best.source_tokens:
                continue
            image = alignment_image(
                best.source_tokens,
                best.tokens,
                best.alignments,
                f"Attention after epoch {epoch + 1}",
            )
            tf.summary.image(
                f"alignment {number}",
                image[None, :, :, :3],
                description=_escape_markdown(source),
            )


def _best_translations(
    translator: TextTranslator | JaxTranslator, lines: list[str]
) -> list[Translation]:
    sentences = sentences_by_place(
        lambda places: translator.translate_batch(
            tf.constant([lines[i] for i in places])
        ),
        lines,
        translator.decoding.batch_size,
    )
    return in_order(
        (place, best_of(translations_of(s))) for place, s in sentences
    )


def _escape_markdown(text: str) -> str:
    """Escape a text for Markdown."""
    text = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"[\\|`*_\[\]]", r"\\\g<0>", text)
