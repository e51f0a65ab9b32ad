"""Model, data and comparison of the runs on several devices."""

import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from luong_keras.config import AttentionConfig
from luong_keras.data.padding import share_of_batch
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.training import inputs_and_targets
from luong_keras.training import optimizers
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import (
    TokenAccuracy,
    TokenCount,
    TokenPerplexity,
)
from luong_keras.training.optimizers import make_optimizer
from tests.layer_checks import small_config

STEPS, EPOCHS, SIZE, LAST, WORDS = 10, 5, 7, 3, 20
MODELS = {
    "global": {"input_feeding": False},
    "local": {
        "attention": AttentionConfig(
            kind="local", alignment="predictive", half_width=2
        )
    },
}
LOSSES = {
    "sentence": {},
    "word": {"normalization": "word"},
    "nominal": {"nominal_batch_size": SIZE},
}
OPTIMIZERS = {"sgd": 1.0, "adam": 0.01}
CLIP = 0.1


class Batches:
    """Rows of unequal length; the last batch of an epoch is smaller."""

    steps_per_epoch = STEPS

    def __init__(self, **share):
        self.share = share

    def dataset(self, start_step, stop_step):
        return self.shared(start_step, stop_step).map(inputs_and_targets)

    def shared(self, start_step, stop_step):
        signature = tf.TensorSpec((None, None), tf.int32)
        names = ("source", "target_in", "target_out")
        return tf.data.Dataset.from_generator(
            lambda: (
                share_of_batch(self._batch(step), **self.share)
                for step in range(start_step, stop_step)
            ),
            output_signature=dict.fromkeys(names, signature),
        )

    def _batch(self, step):
        rng = np.random.default_rng(step)
        rows = LAST if (step + 1) % STEPS == 0 else SIZE
        source = padded(rng, rows, rng.integers(1, 7, rows))
        target_out = padded(rng, rows, rng.integers(2, 6, rows))
        target_in = np.pad(target_out, ((0, 0), (1, 0)), constant_values=1)
        target_in = target_in[:, :-1] * (target_out > 0)
        return {
            "source": source,
            "target_in": target_in,
            "target_out": target_out,
        }


def padded(rng, rows, lengths):
    ids = rng.integers(3, WORDS, (rows, lengths.max()))
    return (ids * (np.arange(ids.shape[1]) < lengths[:, None])).astype("int32")


def make(
    attention="global",
    precision="float64",
    optimizer="sgd",
    loss="sentence",
    clip_norm=CLIP,
    dropout=0.0,
    **options,
):
    keras.utils.set_random_seed(1)
    config = small_config(
        WORDS,
        dropout=dropout,
        initial_range=0.6,
        precision=precision,
        **MODELS[attention],
    )
    model = TranslationModel(config).training_model
    model.compile(
        make_optimizer(optimizer, OPTIMIZERS[optimizer], clip_norm, **options),
        loss={
            "word": TranslationLoss(**LOSSES[loss], dtype=precision),
            "hits": None,
        },
        metrics={
            "word": [TokenPerplexity(), TokenCount(name="count")],
            "hits": [TokenAccuracy()],
        },
        jit_compile=keras.backend.backend() == "jax",
    )
    return model


def numbers(variables):
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def difference(found, expected):
    return max(
        float(abs(one - other).max())
        for one, other in zip(found, expected, strict=True)
    )


def compared(train, counts, record, parts):
    """Compare the weights trained on several devices with those on one.

    `train` takes a number of devices, None for one; `record` calls a function
    with a norm once it is computed.
    """
    norms = []
    original = optimizers.gradient_norm

    def recording(*arguments):
        norm = original(*arguments)
        record(norms.append, norm)
        return norm

    optimizers.gradient_norm = recording
    expected, logs = train(None)
    optimizers.gradient_norm = original
    found = {"clipped": int(sum(norm > CLIP for norm in norms)), "logs": logs}
    for count in counts.split("+"):
        weights, logs = train(count, parts=int(parts))
        found[count] = {"weights": difference(weights, expected), "logs": logs}
    return found


def answer(functions, folder, names):
    """Print as JSON the results of the functions `name,argument,...`."""
    for name in names:
        check, *options = name.split(",")
        found = functions[check](Path(folder), *options)
        print(json.dumps({name: found}), flush=True)
