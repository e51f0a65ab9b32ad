"""Growth of memory over the steps of a long training run.

Trains the preset `demo`, with fewer units to be quick, and prints the resident
memory after some steps and its growth since the first of these steps:

    python benchmarks/memory_over_steps.py --backend tensorflow
    python benchmarks/memory_over_steps.py --backend jax

The first epochs bring wider and wider batches, and JAX compiles each shape
once. With fewer `--pairs` epochs are shorter, so all shapes occur sooner.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from speed.worker import resident_megabytes


def train(steps: list[int], units: int, pairs: int, backend: str) -> None:
    """Train, and print a line after each of the steps."""
    import keras
    from speed.training_model import training_model

    from luong_keras.config.values import with_values
    from luong_keras.data.corpus_writer import write_corpus
    from luong_keras.data.phrasebook import split_pairs
    from luong_keras.presets import PRESETS
    from luong_keras.recipe import devices
    from luong_keras.recipe.training import FitBatches, training_batches
    from luong_keras.text.word_tokenizer import WordTokenizer
    from luong_keras.training.fit import fit

    on_jax = backend == "jax"
    used = devices.jax_devices(1) if on_jax else devices.ONE_DEVICE
    drawn = split_pairs("train", pairs)
    text = [(pair.source, pair.target) for pair in drawn]
    tokenizers = tuple(
        WordTokenizer.train(side, 1000) for side in zip(*text, strict=True)
    )
    config = with_values(
        PRESETS["demo"],
        {
            "model.units": units,
            "model.source_vocabulary_size": tokenizers[0].vocabulary_size,
            "model.target_vocabulary_size": tokenizers[1].vocabulary_size,
        },
    )
    first = []

    class Report(keras.callbacks.Callback):
        done = 0

        def on_train_batch_end(self, batch, logs=None):
            self.done += 1
            if self.done in steps:
                now = resident_megabytes("VmRSS")
                first.append(now)
                growth = now / first[0] - 1
                print(
                    f"{self.done:6} steps {now:8.1f} MB {growth:+.2%}",
                    flush=True,
                )

    with tempfile.TemporaryDirectory() as folder:
        batches = training_batches(
            write_corpus(text, folder), tokenizers, config
        )
        fit(
            training_model(config, jit_compile=on_jax),
            FitBatches(batches, used),
            epochs=-(-max(steps) // batches.steps_per_epoch),
            callbacks=[Report()],
            verbose=0,
        )


def main() -> None:
    """Read the arguments before Keras is imported, then train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=24_000)
    parser.add_argument(
        "--steps", type=int, nargs="+", default=[200, 400, 1000, 2000, 3000]
    )
    given = parser.parse_args()
    os.environ["KERAS_BACKEND"] = given.backend
    # As the command `luong-keras` sets it.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    print(given.backend)
    train(given.steps, given.units, given.pairs, given.backend)


if __name__ == "__main__":
    main()
