"""Trains, evaluates and exports a translator, from one command.

Without arguments it trains the `demo` preset on the built-in English-German
corpus: a few minutes on two cores. `--preset paper` is the system of Luong,
Pham and Manning (2015) on WMT14, for a GPU; `--preset small` suits tens of
thousands of pairs of your own:

    python examples/wmt14_train.py --preset small \
        --set data.train=corpus/train --set data.dev=corpus/dev \
        --set data.test=corpus/test --run-dir runs/mine

The same command again resumes a run that was interrupted.
"""

import argparse
import dataclasses
import functools
import json
import os
import sys
import time

import keras

from luong_keras import (
    PRESETS,
    BestWeights,
    Corpus,
    Datasets,
    Evaluation,
    EvaluationBatches,
    JsonLinesLog,
    LearningRateHalving,
    ReduceOnPlateau,
    RunConfig,
    RunFolder,
    SentencePieceTokenizer,
    StopOnSignal,
    TrainingBatches,
    TrainingConfig,
    TranslationLoss,
    TranslationModel,
    TranslationValidation,
    Translator,
    WordAccuracy,
    WordCount,
    WordPerplexity,
    WordsPerSecond,
    WordTokenizer,
    config_to_dict,
    corpus_bleu,
    corpus_key,
    export_saved_model,
    fit,
    load_datasets,
    load_tokenizer,
    make_optimizer,
    open_or_write_corpus,
    override,
    phrasebook,
    plot_alignment,
    preprocessors,
    translate_word_for_word,
    word_for_word,
    write_results,
)


def main() -> None:
    """Runs what the command line asks for."""
    # TensorFlow would return the memory of every step to the system.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    arguments = parse_arguments()
    config = resolve_config(arguments)
    run = RunFolder(arguments.run_dir or f"runs/{arguments.preset or 'demo'}")
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


def parse_arguments() -> argparse.Namespace:
    """The command line: a preset, and any setting by name."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--preset", choices=PRESETS, help="default: demo")
    parser.add_argument(
        "--dataset",
        help="phrasebook, files, wmt14_translate, or another builder of "
        "tensorflow_datasets; default: that of the preset",
    )
    parser.add_argument("--run-dir", help="default: runs/PRESET")
    parser.add_argument(
        "--test-subset",
        help="file of line numbers of the test set to keep",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, such as model.units=512; may be repeated",
    )
    return parser.parse_args()


def resolve_config(arguments: argparse.Namespace) -> RunConfig:
    """The preset with the settings of the command line."""
    if arguments.preset is None and arguments.dataset is None:
        print(
            "No --preset: training the demo on the built-in corpus. For "
            "WMT14 English-German as in the paper: --preset paper (downloads "
            "through tensorflow_datasets, wants a GPU). For text files of "
            "your own: --preset small --set data.train=PREFIX …"
        )
    settings = list(arguments.set)
    if arguments.dataset is not None:
        name = {"wmt14": "wmt14_translate", "wmt15": "wmt15_translate"}.get(
            arguments.dataset, arguments.dataset
        )
        settings.insert(0, f"data.dataset={name}")
    if arguments.test_subset is not None:
        settings.append(f"data.test_subset={arguments.test_subset}")
    return override(PRESETS[arguments.preset or "demo"], settings)


def prepare_corpus(
    datasets: Datasets, config: RunConfig, run: RunFolder
) -> Corpus:
    """The checked training text, cached in the run folder."""
    preprocess_source, preprocess_target = preprocessors(config.data)
    corpus = open_or_write_corpus(
        datasets.train,
        run.corpus,
        corpus_key(datasets, config.data),
        preprocess_source=preprocess_source,
        preprocess_target=preprocess_target,
        on_bad_line=config.data.on_bad_line,
    )
    print(f"{len(corpus)} training pairs; skipped: {corpus.skipped}")
    return corpus


def prepare_tokenizers(corpus: Corpus, config: RunConfig, run: RunFolder):
    """Source and target tokenizer, of the run or trained on the corpus."""
    names = ("source_vocabulary", "target_vocabulary")
    if all((run.path / f"{name}.json").exists() for name in names):
        return [load_tokenizer(run.path, name) for name in names]
    data, model = config.data, config.model
    sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
    sides = (["source"], ["target"])
    if data.joint_vocabulary:
        sides = (["source", "target"],) * 2
    tokenizers = []
    for name, size, parts in zip(names, sizes, sides, strict=True):
        lines = (line for part in parts for line in corpus.side_lines(part))
        if data.tokenizer == "sentencepiece":
            tokenizer = SentencePieceTokenizer.train(lines, size)
        else:
            tokenizer = WordTokenizer.train(
                lines, size, pretokenized=data.tokenize
            )
        tokenizer.save(run.path, name)
        tokenizers.append(tokenizer)
    return tokenizers


def fit_vocabulary_sizes(config: RunConfig, source, target) -> RunConfig:
    """A small corpus may have fewer words than were asked for."""
    model = dataclasses.replace(
        config.model,
        source_vocabulary_size=source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
    )
    return dataclasses.replace(config, model=model)


class FitBatches:
    """Training batches as `model.fit` takes them."""

    def __init__(self, batches: TrainingBatches) -> None:
        self.batches = batches
        self.steps_per_epoch = batches.steps_per_epoch

    def dataset(self, start_step: int, stop_step: int):
        dataset = self.batches.dataset(start_step, stop_step)
        return dataset.map(inputs_and_targets).prefetch(2)


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
    if training.halving == "by_iteration":
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


def train(translation_model, tokenizers, corpus, datasets, config, run):
    """Trains to the last epoch; False where a signal stopped it before."""
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
            "word": [WordPerplexity(), WordCount(name="count")],
            "hits": [WordAccuracy()],
        },
        jit_compile=training.jit_compile,
    )
    stop = StopOnSignal()
    greedy = dataclasses.replace(config.decoding, beam_size=1, stack_size=None)
    translator = Translator(
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
            WordsPerSecond(count="word_count"),
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
    if stop.received is not None:
        return False
    translation_model.model.save_weights(run.last_weights)
    return True


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
    return batches.dataset().map(inputs_and_targets).cache()


def report(datasets: Datasets, config: RunConfig, run: RunFolder) -> None:
    """Scores the best weights on the test pairs, exports, shows samples."""
    translator = Translator.from_run(run.path)
    evaluation = Evaluation(translator, config.data)
    sources, references = map(list, zip(*datasets.test, strict=True))
    results, translations = evaluation.scores(sources, references)
    results["perplexity"] = evaluation.perplexity(datasets.test)
    has_attention = translator.translation_model.has_attention
    if has_attention and datasets.test_links is not None:
        results["aer"] = evaluation.alignment_error_rate(
            datasets.test, datasets.test_links
        )
    if config.data.dataset == "phrasebook":
        results["bleu_word_for_word"] = word_for_word_bleu(config)
    run.translations.write_text(
        "".join(line + "\n" for line in translations), encoding="utf-8"
    )
    for i in range(0, len(sources), max(len(sources) // 5, 1)):
        print(f"source       {sources[i]}")
        print(f"reference    {references[i]}")
        print(f"translation  {translations[i]}\n")
    if has_attention and sources[0].strip():
        best = translator.nbest(sources[:1])[0][0]
        run.plots.mkdir(exist_ok=True)
        plot_alignment(
            best.source_tokens,
            best.tokens,
            best.alignments,
            run.plots / "alignment.png",
        )
    write_results(run.results, {"set": "test", **results})
    print(json.dumps(results, indent=2, ensure_ascii=False))
    version = run.export / str(int(time.time()))
    folder = export_saved_model(translator, version, say=print)
    print("exported to", folder)
    print(run.tree())


def is_reported(run: RunFolder) -> bool:
    """Whether an earlier call came to its very end, the export."""
    # What is still being written has another name.
    return run.export.is_dir() and any(
        path.name.isdecimal() for path in run.export.iterdir()
    )


def word_for_word_bleu(config: RunConfig) -> float:
    """What a dictionary learnt from the gold links reaches."""
    size = config.data.train_size or 30_000
    parts = [
        phrasebook.split_pairs(*part)
        for part in (("train", size), ("test", 1000))
    ]
    if config.data.source_language == "de":
        parts = [[phrasebook.turned(pair) for pair in part] for part in parts]
    train, test = parts
    dictionary = word_for_word(train)
    translated = [
        " ".join(translate_word_for_word(pair.source_tokens, dictionary))
        for pair in test
    ]
    references = [" ".join(pair.target_tokens) for pair in test]
    return corpus_bleu(translated, references).score


if __name__ == "__main__":
    main()
