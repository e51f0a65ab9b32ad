"""Small run to interrupt: `python resume_run.py FOLDER STEP` kills itself.

The outputs are those of a translation model, word losses and hits. Dropout
makes the seeds matter, and Adam the state of the optimizer.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import keras
import numpy as np

from luong_keras.ops.cross_entropy import masked_cross_entropy
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.fit import fit
from luong_keras.training.interruption import StopOnSignal
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import TokenAccuracy, TokenPerplexity
from luong_keras.training.schedules import LearningRateHalving
from luong_keras.training.weight_callbacks import BestWeights
from tests.training.fit_helpers import state_of

STEPS, EPOCHS, SNAPSHOT_STEPS, SIZE, LENGTH, WORDS = 7, 3, 3, 4, 5, 13


class Batches:
    """Batches whose order depends only on the epoch."""

    steps_per_epoch = STEPS

    def __init__(self):
        rng = np.random.default_rng(0)
        rows = rng.integers(1, WORDS, (STEPS * SIZE, LENGTH)).astype("int32")
        lengths = rng.integers(2, LENGTH + 1, (STEPS * SIZE, 1))
        self.rows = np.where(np.arange(LENGTH) < lengths, rows, 0)

    def dataset(self, start_step, stop_step):
        rows = np.stack(
            [self._batch(step) for step in range(start_step, stop_step)]
        )
        words = {"source": rows[..., ::-1], "target_out": rows}
        steps = words, {"word_losses": rows, "hits": rows}
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            return tf.data.Dataset.from_tensor_slices(steps)
        return (
            keras.tree.map_structure(lambda array, i=i: array[i], steps)
            for i in range(len(rows))
        )

    def _batch(self, step):
        epoch, batch = divmod(step, STEPS)
        order = np.random.default_rng(epoch).permutation(len(self.rows))
        return self.rows[order[batch * SIZE : (batch + 1) * SIZE]]


class WordLosses(keras.layers.Layer):
    def call(self, logits, targets):
        best = keras.ops.cast(keras.ops.argmax(logits, -1), "int32")
        hits = keras.ops.cast(best == targets, "float32")
        return masked_cross_entropy(logits, targets), hits


def build_model():
    keras.utils.set_random_seed(3)
    source = keras.Input((LENGTH,), dtype="int32", name="source")
    target_out = keras.Input((LENGTH,), dtype="int32", name="target_out")
    x = keras.layers.Embedding(WORDS, 8)(source)
    # Without a seed, torch draws from its own generator.
    x = keras.layers.Dropout(0.3)(x)
    x = keras.layers.Dense(8, "tanh")(x)
    logits = keras.layers.Dense(WORDS)(x)
    losses, hits = WordLosses(name="losses")(logits, target_out)
    # Keras before 3.12 names outputs only by their layers.
    model = keras.Model(
        {"source": source, "target_out": target_out},
        {
            "word_losses": keras.layers.Identity(name="word_losses")(losses),
            "hits": keras.layers.Identity(name="hits")(hits),
        },
    )
    model.compile(
        keras.optimizers.Adam(0.02, global_clipnorm=5.0),
        loss={"word_losses": TranslationLoss(), "hits": None},
        metrics={"word_losses": [TokenPerplexity()], "hits": [TokenAccuracy()]},
        jit_compile=keras.backend.backend() == "jax",
    )
    return model


class SignalAt(keras.callbacks.Callback):
    """Callback that sends a signal to this process after some batches."""

    def __init__(self, number, step):
        super().__init__()
        self.number, self.step = number, step

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.epoch * STEPS + batch + 1 == self.step:
            os.kill(os.getpid(), self.number)


def train(folder, *others):
    """Train, and return results that a resumed run must reproduce."""
    folder = Path(folder)
    model = build_model()
    best = BestWeights(
        folder / "best.weights.h5", "word_losses_perplexity", "min"
    )
    log = JsonLinesLog(folder / "log.jsonl")
    halving = LearningRateHalving(first_halved_epoch=2, halvings_per_epoch=2)
    history = fit(
        model,
        Batches(),
        epochs=EPOCHS,
        callbacks=[halving, best, log, StopOnSignal(), *others],
        snapshot_path=folder / "snapshot.npz",
        snapshot_steps=SNAPSHOT_STEPS,
        verbose=0,
    )
    digests = [
        hashlib.sha256(array.tobytes()).hexdigest() for array in state_of(model)
    ]
    return {
        "digests": digests,
        "log": log.read(),
        "best": best.best,
        "epochs": history.epoch,
    }


if __name__ == "__main__":
    train(sys.argv[1], SignalAt(signal.SIGKILL, int(sys.argv[2])))
