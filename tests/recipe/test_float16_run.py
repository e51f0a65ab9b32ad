"""A run in float16 with loss scaling."""

import keras
import numpy as np
import pytest

from luong_keras.training.run_folder import RunFolder
from luong_keras.training.snapshot import Snapshot, remove_counters
from luong_keras.translator import Translator
from tests.recipe.quick_runs import TINY, quick_runs

WORDS = ("cat", "dog", "bird", "fish", "tree")
PAIRS = [(f"{a} {b} {a}", f"{b}e {a}e.") for a in WORDS for b in WORDS]
STEPS = 3  # per epoch
SETTINGS = TINY | {
    "precision": "mixed_float16",
    "batch_size": 8,
    "epochs": 2,
    "optimizer": "sgd",
    "learning_rate": 0.25,
    "training.clip_norm": 1.0,
    "training.halving": "start",
    "training.first_halved_epoch": 2,
    "training.snapshot_steps": 1,
    # large enough for the first gradients to overflow
    "model.initial_range": 2.0,
}


class OptimizerRecord(keras.callbacks.Callback):
    """Callback that records the optimizer per step, and may interrupt."""

    def __init__(self, stop=None):
        super().__init__()
        self.stop, self.steps = stop, []

    def on_train_batch_end(self, batch, logs=None):
        optimizer = self.model.optimizer
        rate = float(optimizer.inner_optimizer.learning_rate)
        scale = float(optimizer.dynamic_scale)
        steps = int(optimizer.iterations)
        self.steps.append((scale, steps, rate))
        if len(self.steps) == self.stop:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_resumed_runs_keep_the_loss_scale(tmp_path):
    def fit(name, callback):
        run = RunFolder(tmp_path / name)
        options = {"callbacks": [callback], **SETTINGS}
        with quick_runs():
            Translator.fit(PAIRS, run_dir=run.path, **options)
        snapshot = Snapshot.read(run.snapshot)
        return snapshot, remove_counters(snapshot.arrays)

    whole, after = OptimizerRecord(), OptimizerRecord()
    before = OptimizerRecord(stop=STEPS + 2)
    expected, arrays = fit("whole", whole)
    with pytest.raises(KeyboardInterrupt):
        fit("resumed", before)
    found, resumed_arrays = fit("resumed", after)
    # The snapshot does not include the interrupted step.
    assert before.steps[:-1] + after.steps == whole.steps
    scales, steps, rates = zip(*whole.steps, strict=True)
    # Each overflow halves the scale and skips its step.
    overflows = int(np.log2(2.0**15 / scales[-1]))
    assert overflows > 0 and scales[STEPS + 1] < 2.0**15
    assert steps[-1] == 2 * STEPS - overflows > STEPS
    assert rates == (0.25,) * STEPS + (0.125,) * STEPS
    assert found.position == expected.position == 2 * STEPS
    assert arrays.keys() == resumed_arrays.keys()
    for name, array in resumed_arrays.items():
        np.testing.assert_array_equal(array, arrays[name], name)
    optimizer = "optimizer/lossscaleoptimizer"
    assert arrays[f"{optimizer}/dynamic_scale"] == scales[-1]
    assert arrays[f"{optimizer}/step_counter"] == steps[-1]
