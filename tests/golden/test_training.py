import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.interop import authors_weights
from luong_keras.losses import TranslationLoss
from luong_keras.optimizers import make_optimizer
from luong_keras.training.optimizers import gradient_norm
from luong_keras.training.schedules import (
    rate_halved_after_epoch,
    rate_halved_by_iteration,
)
from tests.golden.authors_models import authors_model, padded
from tests.golden.golden_files import cases
from tests.layer_checks import differentiable, to_numpy

FILE = "training.npz"
CHUNK = 100  # batches


def is_input(name):
    return name.startswith("init/") or name.rsplit("_")[-1] in ("src", "tgt")


def options_of(meta):
    """Return the command line (name, value, name, value, …) as a dictionary."""
    words = meta["options"].split(",")
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


def rate(meta, step, steps_per_epoch):
    options = options_of(meta)
    rule = {
        "finetune_epoch": int(options["finetuneEpoch"]),
        "epoch_fraction": options["epochFraction"],
    }
    first = meta["learning_rate"]
    if "epochIter" in options:
        return rate_halved_by_iteration(
            first, step, options["epochIter"], **rule
        )
    return rate_halved_after_epoch(first, step, steps_per_epoch, **rule)


class Training:
    """A training run from the authors' weights, on their sentences."""

    def __init__(self, arrays, meta, precision):
        self.arrays, self.meta = arrays, meta
        weights = {
            name.removeprefix("init/"): array
            for name, array in arrays.items()
            if name.startswith("init/")
        }
        self.model = authors_model(meta, weights, precision)
        self.training_model = self.model.training_model
        self.pad_id = meta["tgt_bos_id"]
        self.costs = {}
        loss = TranslationLoss(
            nominal_batch_size=meta["batch_size"],
            pad_id=self.pad_id,
            dtype=precision,
        )
        self.clip_norm = options_of(meta)["maxGradNorm"]
        self.training_model.compile(
            make_optimizer(
                "sgd",
                meta["learning_rate"],
                self.clip_norm,
                count_embeddings=False,
            ),
            loss={"word": loss, "hits": None},
            jit_compile=False,
        )

    def batch(self, part, rows):
        """Return ids with begin and end symbols, cut to the longest row."""
        source = self.arrays[f"{part}_src"][rows]
        target = self.arrays[f"{part}_tgt"][rows]
        bos = np.full((len(rows), 1), self.meta["tgt_bos_id"])
        end = np.full((len(rows), 1), -1)
        target_out = np.concatenate([target, end], 1)
        lengths = (target >= 0).sum(1)
        target_out[np.arange(len(rows)), lengths] = self.meta["tgt_eos_id"]
        words = lengths.max() + 1
        return {
            "source": padded(
                source[:, : (source >= 0).sum(1).max()], self.meta["src_pad_id"]
            ),
            "target_in": padded(
                np.concatenate([bos, target], 1)[:, :words], self.pad_id
            ),
            "target_out": padded(target_out[:, :words], self.pad_id),
        }

    def batches(self):
        pytest.importorskip("tensorflow", reason="sorts the batches")
        from luong_keras.data.batch_order import sorted_batches

        lengths = (self.arrays["train_tgt"] >= 0).sum(1)
        size, count = self.meta["batch_size"], len(lengths)
        return [
            rows
            for first in range(0, count, CHUNK * size)
            for rows in sorted_batches(
                np.arange(count)[first : first + CHUNK * size], [lengths], size
            )
        ]

    def losses(self, batch):
        return self.training_model(
            [batch[k] for k in ("source", "target_in", "target_out")]
        )["word"]

    def cost_per_word(self, part):
        batch = self.batch(part, np.arange(len(self.arrays[f"{part}_src"])))
        words = (batch["target_out"] != self.pad_id).sum()
        return to_numpy(self.losses(batch)).sum() / words

    def step(self, batch, step_rate):
        """Do one update; return the summed cost, words, norm and scale."""
        variables = self.training_model.trainable_variables
        size = self.meta["batch_size"]
        key = batch["target_out"].tobytes()
        if key not in self.costs:  # Compiled once for all epochs.
            self.costs[key] = differentiable(
                lambda: ops.sum(self.losses(batch)), variables
            )
        cost, gradients = self.costs[key]()
        norm = gradient_norm(
            [g / size for g in gradients], variables, count_embeddings=False
        )
        norm = float(to_numpy(norm))
        self.training_model.optimizer.learning_rate = step_rate
        target = batch["target_out"]
        self.training_model.train_on_batch(
            batch, {"word": target, "hits": target}
        )
        words = (target != self.pad_id).sum()
        scale = min(1, self.clip_norm / norm) / size
        return cost, words, norm, scale


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [pytest.param((FILE, name), id=name) for name in cases(FILE)],
    indirect=True,
)
def test_training_run_matches_the_authors(case, compare, float64):
    arrays, meta = case
    check = compare(arrays, [n for n in arrays if is_input(n)])
    # An optimizer keeps its learning rate in `keras.config.floatx()`.
    old, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    try:
        training = Training(arrays, meta, "float64")
        trace, evaluations = run(training)
    finally:
        keras.config.set_floatx(old)
        # Otherwise a policy made in the meantime would stay.
        keras.config.set_dtype_policy(policy)
    check.check("trace", np.array(trace))
    check.check("eval", np.array(evaluations))
    for name, array in authors_weights(training.model).items():
        check.check(f"final/{name}", array)


def run(training):
    meta, batches = training.meta, training.batches()
    trace, evaluations, step = [], [], 0
    for epoch in range(1, int(options_of(meta)["numEpoches"]) + 1):
        for rows in batches:
            batch = training.batch("train", rows)
            step_rate = rate(meta, step, len(batches))
            figures = training.step(batch, step_rate)
            step += 1
            source, target = batch["source"], batch["target_in"]
            shape = (len(rows), target.shape[1], source.shape[1])
            trace.append((epoch, step, step_rate, *figures, *shape))
        costs = [training.cost_per_word(part) for part in ("valid", "test")]
        evaluations.append((epoch, step, *costs))
    return trace, evaluations
