"""From batches and settings to trained weights."""

from __future__ import annotations

import functools
import sys
import time

import keras

from luong_keras.config import RunConfig, TrainingConfig
from luong_keras.data.batching import TrainingBatches
from luong_keras.data.evaluation_batches import EvaluationBatches
from luong_keras.data.padding import padded_rows
from luong_keras.evaluation.bleu import corpus_bleu
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.ops.replicas import replica_count
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.best_weights import BestWeights
from luong_keras.training.fit import fit
from luong_keras.training.json_lines_log import JsonLinesLog
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import (
    TokenAccuracy,
    TokenCount,
    TokenPerplexity,
)
from luong_keras.training.nonfinite import StopOnNonFinite
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.schedules import (
    LearningRateHalving,
    ReduceOnPlateau,
)
from luong_keras.training.stop_on_signal import StopOnSignal
from luong_keras.training.tokens_per_second import TokensPerSecond
from luong_keras.training.translation_validation import TranslationValidation


class FitBatches:
    """Training batches as `model.fit` takes them."""

    def __init__(self, batches: TrainingBatches) -> None:
        self.batches = batches
        self.steps_per_epoch = batches.steps_per_epoch

    def dataset(self, start_step: int, stop_step: int):
        dataset = self.batches.dataset(start_step, stop_step)
        return shared_rows(dataset).map(inputs_and_targets).prefetch(2)


def shared_rows(dataset):
    """Batches of which every replica gets as many rows.

    Keras weights the loss in its logs by the rows of a batch, also by those
    of padding; gradients, perplexity and accuracy do not know of them.
    """
    replicas = replica_count()
    if replicas == 1:
        return dataset
    return dataset.map(lambda batch: padded_rows(batch, replicas))


def inputs_and_targets(batch):
    """A batch as `fit` takes it: the targets stand for both outputs."""
    inputs = {k: batch[k] for k in ("source", "target_in", "target_out")}
    targets = batch["target_out"]
    return inputs, {"word": targets, "hits": targets}


def translation_loss(config: RunConfig) -> TranslationLoss:
    """The objective, divided by what the configuration says."""
    training = config.training
    size = training.batch_size if training.nominal_batch_size else None
    wide = config.model.precision == "float64"
    return TranslationLoss(
        training.normalization,
        nominal_batch_size=size,
        dtype="float64" if wide else None,
    )


def optimizer(config: RunConfig) -> keras.optimizers.Optimizer:
    """The optimizer; with its loss scaled where gradients are float16."""
    training = config.training
    made = make_optimizer(
        training.optimizer,
        training.learning_rate,
        training.clip_norm,
        count_embeddings=training.clip_counts_embeddings,
        on_nonfinite="skip" if training.on_nonfinite == "skip" else "note",
    )
    if config.model.precision in ("float16", "mixed_float16"):
        return keras.optimizers.LossScaleOptimizer(made)
    return made


def learning_rate_schedule(
    training: TrainingConfig,
) -> keras.callbacks.Callback:
    """The rule of the paper's text, one of its authors', or by results."""
    if training.halving == "plateau":
        return ReduceOnPlateau("val_bleu", "max", training.halving_factor)
    if training.iterations_per_epoch is not None:  # "by_iteration" alone
        return LearningRateHalving.by_iteration(
            training.iterations_per_epoch,
            training.first_halved_epoch - 1,
            1 / training.halvings_per_epoch,
            factor=training.halving_factor,
        )
    if training.halving == "after_epoch":
        return LearningRateHalving.after_epoch(
            training.first_halved_epoch - 1,
            1 / training.halvings_per_epoch,
            factor=training.halving_factor,
        )
    return LearningRateHalving(
        training.first_halved_epoch,
        training.halvings_per_epoch,
        factor=training.halving_factor,
    )


def train(
    translation_model, tokenizers, corpus, datasets, config, run, deadline=None
):
    """Trains to the last epoch; False where it was stopped before.

    By a signal, or at the `deadline` of `time.monotonic`.
    """
    training, data = config.training, config.data
    batches = TrainingBatches(
        corpus,
        *tokenizers,
        batch_size=training.batch_size,
        seed=training.seed,
        max_length=data.max_length,
        over_long=data.over_long,
        batching=data.batching,
    )
    run.write_data(batches.fingerprint)
    print(
        f"{batches.steps_per_epoch} batches an epoch; pairs dropped: "
        f"{batches.dropped}, cut: {batches.cut}"
    )
    model = translation_model.training_model
    model.compile(
        optimizer(config),
        loss={"word": translation_loss(config), "hits": None},
        metrics={
            "word": [TokenPerplexity(), TokenCount(name="count")],
            "hits": [TokenAccuracy()],
        },
        jit_compile=training.jit_compile,
    )
    stop = StopOnSignal(deadline=deadline)
    greedy = config.decoding.with_(beam_size=1, stack_size=None)
    translator = TextTranslator(
        translation_model, *tokenizers, greedy, *preprocessors(data)
    )
    sources, references = zip(*datasets.dev, strict=True)
    started = time.perf_counter()
    fit(
        model,
        FitBatches(batches),
        epochs=training.epochs,
        snapshot_path=run.snapshot,
        snapshot_steps=training.snapshot_steps,
        validation_data=validation_batches(tokenizers, datasets.dev, config),
        callbacks=[
            StopOnNonFinite(
                most_skipped=training.most_skipped,
                describe=functools.partial(describe_batch, batches),
            ),
            TokensPerSecond(count="word_count"),
            TranslationValidation(
                translator.translate,
                sources,
                references,
                functools.partial(corpus_bleu, lowercase=data.lowercase),
                samples=training.samples,
                output_folder=run.samples,
            ),
            learning_rate_schedule(training),
            BestWeights(run.best_weights, model=translation_model.model),
            JsonLinesLog(run.log),
            keras.callbacks.TensorBoard(run.tensorboard),
            stop,
        ],
        # A bar on a terminal, a line an epoch in a file.
        verbose=1 if sys.stdout.isatty() else 2,
    )
    print(f"trained for {time.perf_counter() - started:.0f} s in this process")
    if stop.stopping:
        return False
    translation_model.model.save_weights(run.last_weights)
    return True


def describe_batch(batches: TrainingBatches, step: int) -> str:
    """Which lines of the run's text a step is made of, and the longest."""
    lines = batches.lines(step)
    sources, targets = batches.corpus.lines(lines)
    longest = max(range(len(lines)), key=lambda i: len(sources[i]))
    pair = " ||| ".join(
        side[longest][:80].decode("utf-8", "replace")
        for side in (sources, targets)
    )
    return (
        f"Its pairs are the lines {', '.join(map(str, sorted(lines + 1)))} of "
        f"{batches.corpus.folder}/source.txt and target.txt; the longest "
        f"begins {pair!r}. "
    )


def validation_batches(tokenizers, dev, config):
    """The development pairs, for the perplexity after each epoch."""
    prepare = [found or str for found in preprocessors(config.data)]
    batches = EvaluationBatches(
        [prepare[0](source) for source, _ in dev],
        tokenizers[0],
        config.training.batch_size,
        config.decoding.max_source_length,
        [prepare[1](target) for _, target in dev],
        tokenizers[1],
    )
    return shared_rows(batches.dataset()).map(inputs_and_targets).cache()
