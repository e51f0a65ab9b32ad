import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.training.fit import fit
from luong_keras.training.interruption import SnapshotCallback
from luong_keras.training.monitoring import (
    NonFiniteError,
    StopOnNonFinite,
    check_finite,
)
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.snapshot import Snapshot

STEPS = 8


class Rows:
    """Batches of which some have a non-finite loss."""

    steps_per_epoch = STEPS

    def __init__(self, bad):
        self.bad = bad

    def dataset(self, start_step, stop_step):
        for step in range(start_step, stop_step):
            rows = np.random.default_rng(step).normal(size=(4, 2))
            value = self.bad.get(step, 1.0)
            yield rows.astype("float32"), np.full((4, 1), value, "float32")


def make(name="sgd", on_nonfinite="note", scaled=False, **options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)]
    )
    optimizer = make_optimizer(name, 0.1, on_nonfinite=on_nonfinite, **options)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 4.0)
    model.compile(
        optimizer, "mse", jit_compile=keras.backend.backend() == "jax"
    )
    return model


def weights(model):
    return [ops.convert_to_numpy(w) for w in model.trainable_variables]


def run(model, bad, epochs=2, **options):
    check = StopOnNonFinite(**{"every_steps": 3, **options})
    fit(model, Rows(bad), epochs=epochs, callbacks=[check], verbose=0)
    return check


@pytest.mark.parametrize("optimizer", ["adam", make_optimizer("adam")])
def test_optimizers_that_do_not_count_are_refused(optimizer):
    model = make()
    model.compile(optimizer, "mse")
    with pytest.raises(ValueError, match="on_nonfinite='note'.*Received: .*A"):
        run(model, {})


@pytest.mark.slow_after_first
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("clip_norm", [None, 5.0])
def test_errors_name_the_step(value, clip_norm):
    model = make(clip_norm=clip_norm)
    with pytest.raises(NonFiniteError, match="epoch 2, batch 5 of 8. Step 12"):
        run(model, {12: value}, describe=lambda step: f"Step {step}! ")


def test_errors_name_the_first_of_several_steps():
    with pytest.raises(NonFiniteError, match="epoch 1, batch 4 of 8"):
        run(make(), {3: np.nan, 4: np.nan, 5: np.inf})


def test_the_last_batch_of_an_epoch_is_checked():
    with pytest.raises(NonFiniteError, match="epoch 1, batch 8 of 8"):
        run(make(), {7: np.nan}, every_steps=100)


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="one batch per step on torch"
)
def test_steps_of_several_batches_are_checked_as_often():
    model = make()
    model.compile(
        make_optimizer(on_nonfinite="note"),
        "mse",
        jit_compile=False,
        steps_per_execution=4,
    )
    check = StopOnNonFinite(every_steps=6)
    checks = []
    check._check = lambda: checks.append(check._batch)
    rows = Rows({})
    rows.steps_per_epoch = 24
    # `model.fit` of Keras 3.10 passes the first batch of a step, not the last.
    fit(model, rows, epochs=1, callbacks=[check], verbose=0)
    # The counts 6, 12, 18 and 24 are reached; then the epoch ends.
    assert len(checks) == 5


def test_steps_since_the_last_check_are_checked_before_a_snapshot(tmp_path):
    check, path = StopOnNonFinite(every_steps=50), tmp_path / "snapshot.npz"
    with pytest.raises(NonFiniteError, match="epoch 1, batch 3 of 8"):
        fit(
            make(),
            Rows({2: np.nan}),
            epochs=1,
            callbacks=[check],
            snapshot_path=path,
            snapshot_steps=4,
            verbose=0,
        )
    assert not path.exists()
    check.set_state({"skipped": 0})  # of version 0.3.0


def test_errors_of_batches_of_unknown_number_name_the_batch():
    check = StopOnNonFinite(every_steps=1, describe=str)
    data = (batch for batch in Rows({3: np.nan}).dataset(0, STEPS))
    with pytest.raises(NonFiniteError, match=r"epoch 1, batch 4\. The last"):
        make().fit(data, callbacks=[check], verbose=0, shuffle=False)


def test_a_model_with_restored_weights_trains_again():
    model = make()
    before = weights(model)
    check = StopOnNonFinite(every_steps=1)

    def train(bad):
        fit(model, Rows(bad), epochs=1, callbacks=[check], verbose=0)

    with pytest.raises(NonFiniteError, match="batch 3 of 8"):
        train({2: np.nan})
    for variable, value in zip(model.trainable_variables, before, strict=True):
        variable.assign(value)
    train({})
    with pytest.raises(NonFiniteError, match="batch 6 of 8"):
        train({5: np.nan})


def test_weights_that_are_nan_are_not_saved(tmp_path):
    path = tmp_path / "snapshot.npz"
    model = make(on_nonfinite=None)
    with pytest.raises(NonFiniteError, match="weights are NaN.*kernel"):
        fit(
            model,
            Rows({5: np.nan}),
            epochs=1,
            snapshot_path=path,
            snapshot_steps=4,
            verbose=0,
        )
    assert Snapshot.read(path).position == 4
    weight = ops.convert_to_numpy(ops.full((1,), np.nan, "bfloat16"))
    with pytest.raises(NonFiniteError, match="model/kernel"):
        check_finite({"model/kernel": weight})


def test_overflows_of_float16_are_tolerated_while_the_scale_falls():
    model = make(scaled=True)
    run(model, {3: np.inf, 9: np.inf})  # scale 4, 2, 1
    model = make(scaled=True)
    with pytest.raises(NonFiniteError, match="overflows float16"):
        run(model, dict.fromkeys(range(3, 12), np.inf))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_gradients_are_clipped_after_unscaling(name):
    """Expect equal bits, because the loss scale is a power of two."""
    models = [make(name, clip_norm=0.5, scaled=on) for on in (True, False)]
    for model in models:
        run(model, {})
    for one, other in zip(*map(weights, models), strict=True):
        np.testing.assert_array_equal(one, other)


def test_embeddings_outside_the_clip_norm_are_checked():
    optimizer = make_optimizer(
        "sgd", 0.1, 5.0, count_embeddings=False, on_nonfinite="note"
    )
    table = keras.Variable(np.ones((2, 2)), name="embeddings")
    kernel = keras.Variable(np.ones(2), name="kernel")
    optimizer.build([table, kernel])
    optimizer.apply(
        [ops.convert_to_tensor(np.full((2, 2), np.nan, "float32"))]
        + [ops.ones(2)],
        [table, kernel],
    )
    assert int(ops.convert_to_numpy(optimizer.nonfinite_steps)) == 1


def test_snapshots_do_not_store_the_non_finite_counts(tmp_path):
    noting, plain = make(), make(on_nonfinite=None)
    Snapshot.capture(noting, 3).write(tmp_path / "new.npz")
    assert SnapshotCallback(tmp_path / "new.npz").restore(plain) == 3
    Snapshot.capture(plain, 4).write(tmp_path / "old.npz")
    assert SnapshotCallback(tmp_path / "old.npz").restore(noting) == 4


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match=r"one of \(None, 'note'\).*'stop'"):
        make_optimizer(on_nonfinite="stop")
