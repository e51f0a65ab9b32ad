"""Speed of the input pipeline, in pairs per second, and its padding.

The data are Multi30k's training pairs, English to German, if the environment
variable LUONG_KERAS_DATA names a folder with `multi30k/`, otherwise the
built-in phrasebook. Reference: 48,000 pairs/s and 10.7 % padding, for joint
subwords on Multi30k, on two CPU cores with other load.

With `--pairs`, a generated corpus of that many pairs with the paper's lengths
passes the whole preparation of a run and 300 steps of a tiny model. The program
prints the time and the memory of each part:

    python benchmarks/input_pipeline.py --pairs 4_500_000
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from speed.batches import multi30k_pairs
from speed.training_model import training_model

from luong_keras.config.values import with_values
from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.presets import PRESETS
from luong_keras.recipe.preparation import prepare_text
from luong_keras.recipe.training import inputs_and_targets, training_batches
from luong_keras.recipe.vocabularies import (
    count_lengths,
    fit_vocabulary_sizes,
    prepare_tokenizers,
)
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder


def load_pairs(phrasebook_size: int) -> tuple[str, list[tuple[str, str]]]:
    """Read the pairs to measure with.

    Args:
        phrasebook_size: Number of pairs of the phrasebook to read.

    Returns:
        The name of the data, and the pairs.
    """
    if Path(os.environ.get("LUONG_KERAS_DATA", ""), "multi30k").is_dir():
        return "multi30k", multi30k_pairs()
    from luong_keras.data.phrasebook import split_pairs

    pairs = split_pairs("train", phrasebook_size)
    return "phrasebook", [(pair.source, pair.target) for pair in pairs]


def tokenizers(
    kind: str, size: int, pairs: list[tuple[str, str]]
) -> tuple[Tokenizer, Tokenizer]:
    """Train the tokenizers of both sides.

    Args:
        kind: `"words"` or `"subwords"`; subwords are shared.
        size: Size of their vocabulary.
        pairs: The text.

    Returns:
        The source and the target tokenizer.
    """
    sides = list(zip(*pairs, strict=True))
    if kind == "words":
        return tuple(WordTokenizer.train(side, size) for side in sides)
    joint = SentencePieceTokenizer.train([*sides[0], *sides[1]], size)
    return joint, joint


def measure(batches: TrainingBatches, epochs: int) -> dict[str, float]:
    """Iterate over some epochs, from the middle of the first one.

    Args:
        batches: The batches.
        epochs: Number of epochs.

    Returns:
        The seconds until the first batch, the pairs per second after it,
        also per CPU second of all threads, and the share of padding.
    """
    start = batches.steps_per_epoch // 2
    stop = start + epochs * batches.steps_per_epoch
    pairs = cells = padding = 0
    began = time.perf_counter()
    for step, batch in enumerate(batches.dataset(start, stop)):
        if step == 0:
            first = time.perf_counter() - began
            cpu_began = time.process_time()
        pairs += batch["source"].shape[0]
        for name in ("source", "target_in"):
            ids = batch[name].numpy()
            cells += ids.size
            padding += int((ids == 0).sum())
    cpu_seconds = time.process_time() - cpu_began
    seconds = time.perf_counter() - began - first
    pairs -= batches.batch_size
    return {
        "first": first,
        "rate": pairs / seconds,
        "cpu_rate": pairs / cpu_seconds,
        "padding": padding / cells,
    }


def large(arguments: argparse.Namespace) -> None:
    """Print a line for each part of the preparation of a large corpus.

    Separate processes write the text and run each kind of tokenizer, to
    measure the memory of each.
    """
    from large_corpus import write_generated

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = arguments.text
        if path is None:
            path = Path(folder, "train.tsv")
            began = time.perf_counter()
            in_a_process(write_generated, path, arguments.pairs)
            print(
                f"{arguments.pairs:,} pairs, {path.stat().st_size / 1e9:.2f} "
                f"GB, generated in {time.perf_counter() - began:.0f} s",
                flush=True,
            )
        for kind in arguments.kinds:
            in_a_process(large_of_kind, kind, path, folder, arguments)


def in_a_process(function, *given) -> None:
    """Call a function in a new process."""
    process = multiprocessing.get_context("spawn").Process(
        target=function, args=given
    )
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def large_of_kind(kind, path, folder, arguments) -> None:
    """Run the preparation with one kind of tokenizer."""
    from large_corpus import PeakMemory, Stages

    config = with_values(
        PRESETS["small"],
        {
            "data.train": str(path),
            "data.tokenizer": kind,
            "data.joint_vocabulary": kind == "sentencepiece",
            "data.max_length": arguments.max_length,
            "data.filters.duplicates": arguments.duplicates,
            "vocabulary_size": arguments.vocabulary_size,
            "model.tied_embeddings": False,
            "embedding_size": 16,
            "units": 16,
            "batch_size": 128,
        },
    )
    memory = PeakMemory()
    memory.start()
    steps_of_a_model(config, some_batches())
    base = memory.look()[0]
    print(f"{kind}: the framework alone, {base / 1e9:.2f} GB")
    stages = Stages(memory, base)
    run_large(config, RunFolder(Path(folder, kind)), arguments.pairs, stages)
    memory.stop()
    print(
        f"{kind}, {arguments.pairs:,} pairs: at most "
        f"{stages.maximum / 1e9:.2f} GB above the framework",
        flush=True,
    )


def run_large(config, run, count, stages) -> None:
    """Run the parts of `luong_keras.recipe.stages`, one by one."""
    datasets, corpus = stages(
        "check, hold out, cache", lambda: prepare_text(config, run), count
    )
    tokenizers = stages(
        "vocabularies", lambda: prepare_tokenizers(corpus, config, run), count
    )
    stages("lengths", lambda: count_lengths(corpus, tokenizers, config), count)
    config = fit_vocabulary_sizes(config, *tokenizers)
    batches = stages(
        "batches", lambda: training_batches(corpus, tokenizers, config), count
    )
    steps = min(300, batches.steps_per_epoch)
    # From the middle of the third epoch, like a run that continues.
    start = 5 * batches.steps_per_epoch // 2
    stages(
        f"{steps} steps",
        lambda: steps_of_a_model(config, batches.dataset(start, start + steps)),
        steps * batches.batch_size,
    )


def some_batches() -> tf.data.Dataset:
    """Return two random batches of the usual shape."""
    ids = tf.random.uniform((2, 128, 50), 4, 100, tf.int32)
    names = ("source", "target_in", "target_out")
    return tf.data.Dataset.from_tensor_slices(dict.fromkeys(names, ids))


def steps_of_a_model(config, batches: tf.data.Dataset) -> None:
    """Train a new model on these batches."""
    training_model(config).fit(batches.map(inputs_and_targets), verbose=0)


def main() -> None:
    """Print one line of results for each kind of tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--pool-batches", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--phrasebook-size", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, help="of a generated corpus")
    parser.add_argument("--text", help="a .tsv of that many pairs instead")
    parser.add_argument("--duplicates", action="store_true", help="left out")
    parser.add_argument("--folder", help="for the generated corpus")
    parser.add_argument(
        "--kinds", nargs="+", default=["words", "sentencepiece"]
    )
    arguments = parser.parse_args()
    if arguments.folder is not None:
        Path(arguments.folder).mkdir(parents=True, exist_ok=True)
    if arguments.pairs is not None:
        large(arguments)
        return
    name, pairs = load_pairs(arguments.phrasebook_size)
    print(
        "data       tokens    pairs   kept    pairs/s  per CPU s  padding  "
        "first batch"
    )
    for kind in ("words", "subwords"):
        sides = tokenizers(kind, arguments.vocabulary_size, pairs)
        with tempfile.TemporaryDirectory() as folder:
            batches = TrainingBatches(
                write_corpus(pairs, folder),
                *sides,
                batch_size=arguments.batch_size,
                seed=1,
                max_length=arguments.max_length,
                pool_batches=arguments.pool_batches,
            )
            result = measure(batches, arguments.epochs)
        print(
            f"{name:<10} {kind:<8} {len(pairs):>6} "
            f"{batches.pairs_per_epoch:>6} {result['rate']:>10,.0f} "
            f"{result['cpu_rate']:>10,.0f} {result['padding']:>8.1%} "
            f"{result['first']:>10.2f} s"
        )


if __name__ == "__main__":
    main()
