"""Training of a model from batches and settings."""

import contextlib
import functools
import signal
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras

from luong_keras.config import RunConfig, TrainingConfig
from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus import Corpus
from luong_keras.data.datasets import Datasets
from luong_keras.data.evaluation_batches import EvaluationBatches
from luong_keras.data.padding import FEW_WIDTHS, WIDTHS
from luong_keras.evaluation.metrics.bleu import target_of
from luong_keras.evaluation.metrics.registry import Metric, find_metric
from luong_keras.inference.jax_translator import JaxTranslator
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.devices import ONE_DEVICE, Devices
from luong_keras.recipe.evaluation import with_progress
from luong_keras.recipe.resumption import record_session
from luong_keras.recipe.stored_settings import with_absolute_word_lists
from luong_keras.tables import pluralize
from luong_keras.text.preprocessing import preprocessors
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.training.epoch_logs import (
    JsonLinesLog,
    TokensPerSecond,
    TranslationValidation,
)
from luong_keras.training.fit import fit
from luong_keras.training.interruption import StopOnSignal
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import (
    TokenAccuracy,
    TokenCount,
    TokenPerplexity,
)
from luong_keras.training.monitoring import (
    ReduceOnPlateau,
    StopOnNonFinite,
    StopOnPlateau,
)
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.training_progress import TrainingProgress
from luong_keras.training.weight_callbacks import BestWeights, EpochWeights
from luong_keras.training.weight_files import save_weights

_BATCH = ("source", "target_in", "target_out")


class FitBatches:
    """Training batches for `model.fit` on the given devices.

    `parts` is the number of micro-batches that each device makes of its rows.
    """

    def __init__(
        self,
        batches: TrainingBatches,
        devices: Devices = ONE_DEVICE,
        parts: int = 1,
    ) -> None:
        self.batches = batches
        self.steps_per_epoch = batches.steps_per_epoch
        self.share = rows_of_process(devices, parts)

    def dataset(self, start_step: int, stop_step: int):
        dataset = self.batches.dataset(start_step, stop_step, **self.share)
        return dataset.map(inputs_and_targets).prefetch(2)


def rows_of_process(
    devices: Devices, parts: int = 1, widths: Sequence[int] = WIDTHS
) -> dict[str, Any]:
    """Return the arguments that select the rows of a process and its padding.

    Keras weights the loss in its logs by the rows of a batch, including rows
    of padding. Gradients, perplexity and accuracy ignore rows of padding.
    """
    return {
        "rank": devices.rank,
        "world": devices.world,
        "row_multiple": devices.count * parts,
        "widths": widths if devices.on_jax else (),
    }


def inputs_and_targets(batch):
    """Split a batch for `fit`; both outputs have the same targets."""
    inputs = {name: batch[name] for name in _BATCH}
    targets = batch["target_out"]
    return inputs, {"word": targets, "hits": targets}


def translation_loss(config: RunConfig) -> TranslationLoss:
    """Return the loss with the normalisation that the settings name."""
    training = config.training
    size = training.batch_size if training.nominal_batch_size else None
    wide = config.model.precision == "float64"
    return TranslationLoss(
        training.normalization,
        nominal_batch_size=size,
        dtype="float64" if wide else None,
    )


def build_optimizer(config: RunConfig) -> keras.optimizers.Optimizer:
    """Return the optimizer, with loss scaling if gradients are float16."""
    training = config.training
    optimizer = make_optimizer(
        training.optimizer,
        training.learning_rate,
        training.clip_norm,
        count_embeddings=training.clip_counts_embeddings,
        on_nonfinite="note",
    )
    if config.model.precision in ("float16", "mixed_float16"):
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def learning_rate_schedule(
    training: TrainingConfig,
    metric: Metric,
) -> keras.callbacks.Callback:
    """Return the callback for `training.halving`."""
    if training.halving == "plateau":
        return ReduceOnPlateau(metric.key, metric.mode)
    if training.halving == "by_iteration":
        assert training.iterations_per_epoch is not None  # checked
        return LearningRateHalving.by_iteration(
            training.iterations_per_epoch,
            training.first_halved_epoch - 1,
            1 / training.halvings_per_epoch,
        )
    if training.halving == "after_epoch":
        return LearningRateHalving.after_epoch(
            training.first_halved_epoch - 1,
            1 / training.halvings_per_epoch,
        )
    return LearningRateHalving(
        training.first_halved_epoch, training.halvings_per_epoch
    )


def training_batches(
    corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer], config: RunConfig
) -> TrainingBatches:
    """Return the batches of all epochs."""
    return TrainingBatches(
        corpus,
        *tokenizers,
        batch_size=config.training.batch_size,
        seed=config.training.seed,
        max_length=config.data.max_length,
        over_long=config.data.over_long,
        batching=config.data.batching,
        weights=config.data.weights,
    )


class PreparedRun(NamedTuple):
    """The settings of a run and the text prepared by them.

    Attributes:
        config: The settings, with those that the text decides.
        datasets: The training, validation and test pairs.
        tokenizers: The source and the target tokenizer.
        batches: The training batches.
    """

    config: RunConfig
    datasets: Datasets
    tokenizers: Sequence[Tokenizer]
    batches: TrainingBatches


def train(
    translation_model: TranslationModel,
    prepared: PreparedRun,
    run: RunFolder,
    devices: Devices,
    deadline: float | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> bool:
    """Train a model; return False if training was stopped before its end.

    Training ends with the last epoch or by early stopping. A signal or the
    `deadline`, a time of `time.monotonic`, stops it earlier; Ctrl-C raises
    KeyboardInterrupt after the snapshot is saved. The further `callbacks` see
    the complete logs of an epoch; only the first process calls them.
    """
    config, datasets, tokenizers, batches = prepared
    training = config.training
    references = [target for _, target in datasets.dev]
    metric = find_metric(training.metric, target_of(config.data, references))
    model = translation_model.training_model
    model.microbatches = (
        training.gradient_accumulation_steps * training.parallel_microbatches
    )
    model.parallel_microbatches = training.parallel_microbatches
    model.compile(
        build_optimizer(config),
        loss={"word": translation_loss(config), "hits": None},
        metrics={
            "word": [TokenPerplexity(), TokenCount(name="count")],
            "hits": [TokenAccuracy()],
        },
        # Without its compiler, JAX is too slow for training.
        jit_compile=devices.on_jax,
        # The settings decide, not a global policy of the process.
        auto_scale_loss=False,
    )
    validation_data = validation_batches(
        tokenizers, datasets.dev, config, devices
    )
    validation = translation_validation(
        translation_model, prepared, run, devices, metric
    )
    progress = TrainingProgress(
        metric.key,
        count="count",
        validation_batches=int(validation_data.cardinality()),
        mode=metric.mode,
        title=metric.title or metric.name,
    )
    stop = StopOnSignal(
        deadline=deadline, agree=devices.any if devices.world > 1 else None
    )

    def check_same_start(logs: Any) -> None:
        # If a file system shows new files late, a process may read an old
        # snapshot.
        steps = keras.ops.convert_to_numpy(model.optimizer.iterations)
        devices.check_alike(int(steps), "the steps of the snapshot")

    followers: list[keras.callbacks.Callback] = []
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        if devices.writes:
            stack.enter_context(progress)
            write_session = stack.enter_context(
                record_session(
                    run.sessions, devices, lambda: progress.steps_done
                )
            )
            weights = translation_model.model
            followers = [
                BestWeights(run.best_weights, metric.key, metric.mode, weights),
                EpochWeights(run.checkpoints, training.keep, weights),
                JsonLinesLog(run.log),
                keras.callbacks.TensorBoard(run.tensorboard),
                *callbacks,
                progress,
                keras.callbacks.LambdaCallback(
                    on_train_batch_end=lambda batch, logs: write_session(),
                    on_epoch_end=lambda epoch, logs: write_session(),
                ),
            ]
        if training.init_from is not None and not run.snapshot.exists():
            validation.on_epoch_end(-1)  # scores the parent's weights
        fit(
            model,
            FitBatches(batches, devices, model.microbatches),
            epochs=training.epochs,
            snapshot_path=run.snapshot,
            snapshot_steps=training.snapshot_steps,
            writes_snapshots=devices.writes,
            validation_data=validation_data,
            callbacks=[
                keras.callbacks.LambdaCallback(on_train_begin=check_same_start),
                StopOnNonFinite(
                    describe=functools.partial(describe_batch, batches)
                ),
                TokensPerSecond(count="word_count"),
                validation,
                learning_rate_schedule(training, metric),
                StopOnPlateau(training.patience, metric.key, metric.mode),
                *followers,
                stop,
            ],
            verbose=0,
        )
    if progress.steps_done:
        seconds = time.perf_counter() - started
        print(f"trained for {seconds:.0f} s in this process")
    if stop.received == signal.SIGINT:
        # The caller gets the usual exception of Ctrl-C.
        raise KeyboardInterrupt
    # A deadline may pass after the last epoch.
    if stop.received or (stop.stopping and model.stop_training):
        return False
    if devices.writes:
        save_weights(translation_model.model, run.last_weights)
    return True


def translation_validation(
    translation_model: TranslationModel,
    prepared: PreparedRun,
    run: RunFolder,
    devices: Devices,
    metric: Metric,
) -> TranslationValidation:
    """Return the callback that translates and scores after each epoch.

    Only the first process translates; its score counts in all processes. If
    the metric does not score translations, BLEU does.
    """
    config, datasets, tokenizers, _ = prepared
    sources, references = zip(*datasets.dev, strict=True)
    if metric.score is None:
        metric = find_metric("bleu", target_of(config.data, references))
    assert metric.score is not None
    if not devices.writes:
        # The writing process sends the score.
        return TranslationValidation(
            list,
            sources,
            references,
            lambda ours, theirs: 0.0,
            metric.key,
            samples=0,
            agree=devices.from_first,
        )
    decoding = with_absolute_word_lists(config, run).decoding
    greedy = decoding.with_(
        search="beam", beam_size=1, stack_size=None, shortlist=None
    )
    translator_class: type = JaxTranslator if devices.on_jax else TextTranslator
    translator = translator_class(
        translation_model, *tokenizers, greedy, *preprocessors(config.data)
    )
    return TranslationValidation(
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


def describe_batch(batches: TrainingBatches, step: int) -> str:
    """Describe the batch of a step: its lines and the longest pair."""
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


def validation_batches(tokenizers, pairs, config, devices=ONE_DEVICE):
    """Return batches of the validation pairs."""
    prepare = [function or str for function in preprocessors(config.data)]
    batches = EvaluationBatches(
        [prepare[0](source) for source, _ in pairs],
        tokenizers[0],
        config.training.batch_size,
        config.decoding.max_source_length,
        [prepare[1](target) for _, target in pairs],
        tokenizers[1],
    )
    if batches.cut and devices.writes:
        print(
            f"{batches.cut} of {pluralize(len(pairs), 'validation pair')} cut: "
            "validation and translation read at most "
            f"decoding.max_source_length={config.decoding.max_source_length} "
            "tokens of a source or a target"
        )
    share = rows_of_process(devices, widths=FEW_WIDTHS)
    return batches.dataset(**share).map(inputs_and_targets).cache()
