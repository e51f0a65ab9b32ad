"""Padding and number of compilations by the choice of batch widths.

XLA compiles a step for every shape of a batch. Wider batches have fewer shapes
and more padding. For each choice of widths the program prints the share of
padding in the source and target of an epoch, and the number of shapes after
some epochs. `luong_keras.data.padding.WIDTHS` is one of the choices.

The texts are the built-in phrasebook and, if the environment variable
LUONG_KERAS_DATA names a folder with `multi30k/` and `wmt10k/`, Multi30k and ten
thousand pairs of WMT14.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from input_pipeline import tokenizers

from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.padding import FEW_WIDTHS, WIDTHS, padded_width
from luong_keras.data.phrasebook import split_pairs
from luong_keras.data.text_files import read_pairs

CHOICES = {
    "any": (),
    "WIDTHS": WIDTHS,
    "FEW_WIDTHS": FEW_WIDTHS,
    **{f"multiples of {k}": tuple(range(k, 205, k)) for k in (4, 8, 16, 32)},
    "one": (204,),
}
# Tokens, vocabulary, longest side and batch, as in the presets.
SETTINGS = {
    "phrasebook": ("words", 1000, 100, 64),
    "multi30k": ("subwords", 8000, 80, 64),
    "wmt10k": ("words", 20_000, 50, 128),
}


def texts() -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of each available text."""
    pairs = split_pairs("train")
    found = {"phrasebook": [(pair.source, pair.target) for pair in pairs]}
    folder = Path(os.environ.get("LUONG_KERAS_DATA", ""))
    for name, stem in (("multi30k", "train"), ("wmt10k", "train.10k")):
        files = [folder / name / f"{stem}.{side}.gz" for side in ("en", "de")]
        if all(file.exists() for file in files):
            lines = read_pairs(*files)
            found[name] = [(source, target) for source, target in lines]
    return found


def epoch_sizes(batches: TrainingBatches, epoch: int) -> np.ndarray:
    """Return the rows, source columns, target columns and tokens of batches."""
    steps = batches.steps_per_epoch
    sizes = [
        (
            *batch["source"].shape,
            batch["target_in"].shape[1],
            sum(np.count_nonzero(batch[n]) for n in ("source", "target_in")),
        )
        for batch in batches.dataset(
            epoch * steps, (epoch + 1) * steps
        ).as_numpy_iterator()
    ]
    return np.array(sizes, np.int64)


def report(name: str, pairs: list[tuple[str, str]], epochs: list[int]) -> None:
    """Print a line for each choice of widths."""
    kind, size, longest, batch_size = SETTINGS[name]
    with tempfile.TemporaryDirectory() as folder:
        batches = TrainingBatches(
            write_corpus(pairs, folder),
            *tokenizers(kind, size, pairs),
            batch_size=batch_size,
            seed=1,
            max_length=longest,
        )
        print(f"\n{name}: {batches.steps_per_epoch} batches an epoch")
        print(f"{'widths':16} padding   shapes after epochs {epochs}")
        sizes = [epoch_sizes(batches, epoch) for epoch in range(max(epochs))]
        for choice, widths in CHOICES.items():
            seen: set[tuple[int, ...]] = set()
            counts = []
            shares = []
            for epoch, (rows, *columns, tokens) in enumerate(
                (size.T for size in sizes), start=1
            ):
                source, target = (padded_width(c, widths) for c in columns)
                seen |= set(zip(rows, source, target, strict=True))
                shares.append(1 - tokens.sum() / (rows @ (source + target)))
                if epoch in epochs:
                    counts.append(len(seen))
            print(f"{choice:16} {shares[0]:7.1%}   {counts}", flush=True)


def main() -> None:
    """Read the arguments and report on every text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 4, 8])
    epochs = parser.parse_args().epochs
    for name, pairs in texts().items():
        report(name, pairs, epochs)


if __name__ == "__main__":
    main()
