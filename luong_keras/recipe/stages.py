"""Stages of a run: preparation, training, scores and export.

`run_recipe` calls them: `_prepare_run` prepares the text, `train` compiles the
model and calls `luong_keras.fit`, and `score_and_export` ends the run.
"""

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import keras

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, with_values
from luong_keras.data import phrasebook
from luong_keras.data.datasets import Datasets
from luong_keras.evaluation.metrics.bleu import target_of
from luong_keras.evaluation.metrics.registry import choose_metric, find_metric
from luong_keras.evaluation.plots import plot_alignment
from luong_keras.files.atomic_file import write_text
from luong_keras.files.folder_lock import lock_folder
from luong_keras.files.path_checks import no_pattern
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import best_of
from luong_keras.models.translation_model import TranslationModel
from luong_keras.ops.devices import resolve_precision
from luong_keras.progress import no_output
from luong_keras.recipe.devices import (
    ONE_DEVICE,
    Devices,
    report_lost_processes,
)
from luong_keras.recipe.evaluation import (
    Evaluation,
    format_results,
    write_results,
)
from luong_keras.recipe.fine_tuning import (
    freeze,
    load_initial_weights,
    parent_files,
    prepare_initial_weights,
)
from luong_keras.recipe.initial_settings import decide_languages
from luong_keras.recipe.loading import load_run
from luong_keras.recipe.preparation import prepare_text, read_prepared_text
from luong_keras.recipe.resumption import (
    is_finished,
    mark_finished,
    print_epochs,
    resumed_settings,
)
from luong_keras.recipe.stored_settings import copy_word_lists, run_config
from luong_keras.recipe.training import PreparedRun, train, training_batches
from luong_keras.recipe.vocabularies import (
    check_symbols,
    count_lengths,
    fit_length_limit,
    fit_vocabulary_sizes,
    prepare_tokenizers,
    print_rewritten_references,
    print_unknown_tokens,
)
from luong_keras.serving.export import export_saved_model, next_version
from luong_keras.tables import pluralize, sample_table
from luong_keras.training.monitoring import ReduceOnPlateau, StopOnPlateau
from luong_keras.training.run_folder import RunFolder
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.truncation import TruncatedPlaces

# The settings of a run that replace callbacks.
_SETTINGS_OF_CALLBACKS: dict[tuple[type, ...], str] = {
    (
        keras.callbacks.LearningRateScheduler,
        keras.callbacks.ReduceLROnPlateau,
        LearningRateHalving,
        ReduceOnPlateau,
    ): "training.halving, first_halved_epoch and halvings_per_epoch",
    (
        keras.callbacks.EarlyStopping,
        StopOnPlateau,
    ): "training.patience, with training.metric",
}


def run_recipe(
    config: RunConfig,
    run_dir: str | Path,
    stop_after: float | None = None,
    devices: Devices = ONE_DEVICE,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    train_only: bool = False,
) -> bool:
    """Train, score and export, continuing from the state of the folder.

    On JAX it only trains. Scoring and export are a TensorFlow program: call
    this again on TensorFlow for the same run.

    Args:
        config: The settings.
        run_dir: The folder of the run. An interrupted run continues, as does
            a finished run if `config` has more epochs.
        stop_after: Seconds after which the training stops with a snapshot, as
            it does after a signal.
        devices: The devices that `luong_keras.recipe.devices` has prepared.
        callbacks: Further Keras callbacks, called only in the first process.
        train_only: Whether to stop after the training.

    Returns:
        False if the run was stopped before its end.

    Raises:
        ValueError: If Keras has another backend than the devices, or the
            folder holds a run with other settings.
        FolderInUseError: If another process uses the folder.
    """
    backend = "jax" if devices.on_jax else "tensorflow"
    if keras.backend.backend() != backend:
        raise ValueError(
            f"Expected: Keras on {backend}. Received: KERAS_BACKEND="
            f"{keras.backend.backend()}. Set KERAS_BACKEND=tensorflow; on JAX "
            "trains `luong-keras train --backend jax`."
        )
    deadline = None if stop_after is None else time.monotonic() + stop_after
    # Otherwise TensorFlow returns the memory of each step to the system.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    run = RunFolder(no_pattern(run_dir))
    access = lock_folder(run.path) if devices.writes else no_output()
    with access, report_lost_processes(devices):
        begins = devices.writes and not run.config.exists()
        if devices.writes:
            prepared = _prepare_run(config, run)
        # The other processes read what the first one has written.
        devices.wait("prepared")
        if not devices.writes:
            prepared = _read_prepared_run(config, run)
        config = prepared.config
        batches = prepared.batches
        empty = f"; without tokens: {batches.empty}" if batches.empty else ""
        print(
            f"{pluralize(batches.steps_per_epoch, 'batch', 'batches')} an "
            f"epoch; too long: {batches.dropped} pairs left out, "
            f"{batches.cut} cut{empty}"
        )
        if devices.on_jax:
            print(
                f"{pluralize(devices.count, 'device')}, "
                f"{pluralize(devices.world, 'process', 'processes')}"
            )
        print_epochs(config, run)
        # Keras draws seeds from Python's generator.
        state = random.getstate()
        random.seed(config.training.seed)
        try:
            translation_model = TranslationModel(
                config.model,
                config.training.label_smoothing,
                config.training.sampled_softmax,
            )
        finally:
            random.setstate(state)
        try:
            freeze(translation_model.model, config.training.frozen)
        except ValueError:
            if begins:  # The next call may give other patterns.
                run.data.unlink()
                run.config.unlink()
            raise
        load_initial_weights(translation_model, run)
        translation_model.model.summary()
        if not train(
            translation_model, prepared, run, devices, deadline, callbacks
        ):
            return False
        if devices.on_jax or train_only:
            return True
        if is_finished(config, run):
            print(
                f"{run.path} is finished: an earlier call scored and exported "
                f"it. To repeat both, remove {run.finished}"
            )
            return True
        score_and_export(prepared.datasets, config, run)
        mark_finished(config, run)
        print(run.tree())
        return True


def list_callbacks(
    callbacks: keras.callbacks.Callback
    | Sequence[keras.callbacks.Callback]
    | None,
) -> list[keras.callbacks.Callback]:
    """Return the further callbacks of a run as a list.

    Raises:
        ValueError: If one is no Keras callback, or changes the learning rate
            or the end of a run, which its settings decide.
    """
    if callbacks is None or isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [] if callbacks is None else [callbacks]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                "Expected: as callbacks, objects of keras.callbacks.Callback. "
                f"Received: {callback!r:.200}."
            )
        for kinds, settings in _SETTINGS_OF_CALLBACKS.items():
            if isinstance(callback, kinds):
                raise ValueError(
                    "The settings of a run decide its learning rate and its "
                    "end, so that it can continue. Received: the callback "
                    f"{type(callback).__name__}. Leave it out, and set "
                    f"{settings}."
                )
    return list(callbacks)


def _prepare_run(config: RunConfig, run: RunFolder) -> PreparedRun:
    """Decide the open settings, and make or read the prepared text.

    A setting may depend on those decided before it. Those of the first part
    need no text, so that a mistake stops a run before its text is read.
    """
    begins = not run.config.exists()
    if begins:
        precision = resolve_precision(config.model.precision)
        config = with_values(config, {"model.precision": precision})
        data = config.data
        # All pairs are the default, and the value of the preset demo.
        usual_sizes = None, phrasebook.TRAIN_SIZE
        if data.dataset != "phrasebook" and data.train_size not in usual_sizes:
            raise ValueError(
                "data.train_size is a number of pairs of the built-in corpus. "
                "Expected: train_size=None, or dataset='phrasebook'. Received: "
                f"train_size={data.train_size} with dataset={data.dataset!r}."
            )
        prepare_initial_weights(config, run)
    else:
        config = resumed_settings(config, run)
    # An invalid metric fails before the text is read.
    find_metric(config.training.metric, target_of(config.data, ()))
    config = copy_word_lists(config, run)
    if begins:
        config = decide_languages(config)
    check_symbols(config.data)
    datasets, corpus = prepare_text(config, run)
    if begins:
        references = [target for _, target in datasets.dev]
        metric, message = choose_metric(
            config.training.metric, target_of(config.data, references)
        )
        print(message)
        config = with_values(config, {"training.metric": metric.setting})
        print_rewritten_references(references, config)
    tokenizers = prepare_tokenizers(corpus, config, run)
    if begins:  # Later calls keep the sizes.
        config = fit_vocabulary_sizes(config, *tokenizers)
    count_lengths(corpus, tokenizers, config)
    print_unknown_tokens(corpus, tokenizers, config)
    batches = training_batches(corpus, tokenizers, config)
    config = fit_length_limit(config, batches.pairs)
    run.write_config(config_to_dict(config))
    run.write_data(batches.fingerprint, corpus.fingerprint)
    return PreparedRun(config, datasets, tokenizers, batches)


def _read_prepared_run(config: RunConfig, run: RunFolder) -> PreparedRun:
    """Read what `_prepare_run` wrote, in a process that writes nothing."""
    resumed_settings(config, run)
    config = run_config(run.path, resolve_paths=False)
    datasets, corpus = read_prepared_text(run)
    tokenizers = prepare_tokenizers(corpus, config, run)
    batches = training_batches(corpus, tokenizers, config)
    return PreparedRun(config, datasets, tokenizers, batches)


def score_and_export(
    datasets: Datasets, config: RunConfig, run: RunFolder
) -> None:
    """Score the final weights on the test pairs, print samples and export."""
    weights = config.training.final_weights
    translator = TextTranslator(*load_run(run.path, weights))
    evaluation = Evaluation(translator, config.data, [config.training.metric])
    sources, references = map(list, zip(*datasets.test, strict=True))
    scores, translations = evaluation.all_scores(
        datasets.test, references, datasets.test_links
    )
    results = {"set": "test", "weights": weights, **scores}
    if config.data.dataset == "phrasebook":
        results["bleu_word_for_word"] = phrasebook.word_for_word_bleu(
            config.data.languages
        )
    write_text(run.translations, "".join(f"{t}\n" for t in translations))
    for i in range(0, len(sources), max(len(sources) // 5, 1)):
        sample = sample_table(sources[i], references[i], translations[i])
        print(f"{sample}\n")
    print(format_results(results))
    write_results(run.results, results)
    if translator.translation_model.has_attention:
        with TruncatedPlaces():  # Reported with the scores already.
            best = best_of(translator.nbest(sources[:1])[0])
        if best.source_tokens and best.tokens:
            plot_alignment(
                best.source_tokens,
                best.tokens,
                best.alignments,
                run.plots / "alignment.png",
            )
    folder = export_saved_model(
        translator,
        run.export / str(next_version(run.export)),
        say=print,
        extra_files=parent_files(run.path, translator.translation_model),
    )
    print("exported to", folder)
