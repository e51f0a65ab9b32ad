"""Measures the input pipeline: pairs a second and the share of padding.

The data are Multi30k's training pairs, English to German, where the
environment variable LUONG_KERAS_DATA names a folder with `multi30k/`, and
otherwise the built-in phrasebook. Reference: 25,000 pairs/s and 10.6 %
padding, joint subwords on Multi30k, two CPU cores.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.parallel_text import read_pairs
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer


def load_pairs(phrasebook_size: int) -> tuple[str, list[tuple[str, str]]]:
    """Reads the pairs to measure with.

    Args:
        phrasebook_size: How many pairs of the phrasebook to make.

    Returns:
        The name of the data, and the pairs.
    """
    folder = Path(os.environ.get("LUONG_KERAS_DATA", ""), "multi30k")
    if folder.is_dir():
        lines = read_pairs(folder / "train.en.gz", folder / "train.de.gz")
        return "multi30k", [(source, target) for _, source, target in lines]
    from luong_keras.data.phrasebook import split_pairs

    pairs = split_pairs("train", phrasebook_size, 1)
    return "phrasebook", [(pair.source, pair.target) for pair in pairs]


def tokenizers(
    kind: str, size: int, pairs: list[tuple[str, str]]
) -> tuple[Tokenizer, Tokenizer]:
    """Trains the tokenizers of both sides.

    Args:
        kind: `"words"` or `"subwords"`; subwords are shared.
        size: Their vocabulary's size.
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
    """Runs through some epochs, from the middle of the first one.

    Args:
        batches: The batches.
        epochs: How many epochs.

    Returns:
        The seconds until the first batch, the pairs a second after it, also
        by the processor time of all threads, and the padding's share.
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


def main() -> None:
    """Prints one line of results for each kind of tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--pool-batches", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--phrasebook-size", type=int, default=20_000)
    arguments = parser.parse_args()
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
