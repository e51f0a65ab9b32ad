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
from tests.layer_checks import assert_all_close
from tests.training.fit_helpers import JIT, SEVERAL_STEPS, Rows


def rows(bad, steps=8):
    """Return batches of which some have a non-finite loss."""
    return Rows(steps, width=2, bad=bad)


def make(name="sgd", on_nonfinite="note", scaled=False, **options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)]
    )
    optimizer = make_optimizer(name, 0.1, on_nonfinite=on_nonfinite, **options)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 4.0)
    model.compile(optimizer, "mse", jit_compile=JIT)
    return model


def weights(model):
    return [ops.convert_to_numpy(w) for w in model.trainable_variables]


def run(model, bad, every_steps=3, path=None, **options):
    check = StopOnNonFinite(every_steps, **options)
    fit(
        model,
        rows(bad),
        epochs=2,
        callbacks=[check],
        verbose=0,
        snapshot_path=path,
        snapshot_steps=4,
    )
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


@SEVERAL_STEPS
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
    # `model.fit` of Keras 3.10 passes the first batch of a step, not the last.
    fit(model, rows({}, steps=24), epochs=1, callbacks=[check], verbose=0)
    # The counts 6, 12, 18 and 24 are reached; then the epoch ends.
    assert len(checks) == 5


def test_steps_since_the_last_check_are_checked_before_a_snapshot(path):
    with pytest.raises(NonFiniteError, match="epoch 1, batch 3 of 8"):
        run(make(), {2: np.nan}, every_steps=50, path=path)
    assert not path.exists()
    StopOnNonFinite().set_state({"skipped": 0})  # of version 0.3.0


def test_errors_of_batches_of_unknown_number_name_the_batch():
    check = StopOnNonFinite(every_steps=1, describe=str)
    data = (batch for batch in rows({3: np.nan}).dataset(0, 8))
    with pytest.raises(NonFiniteError, match=r"epoch 1, batch 4\. The last"):
        make().fit(data, callbacks=[check], verbose=0, shuffle=False)


def test_a_model_with_restored_weights_trains_again():
    model = make()
    before = weights(model)
    check = StopOnNonFinite(every_steps=1)

    def train(bad):
        fit(model, rows(bad), epochs=1, callbacks=[check], verbose=0)

    with pytest.raises(NonFiniteError, match="batch 3 of 8"):
        train({2: np.nan})
    for variable, value in zip(model.trainable_variables, before, strict=True):
        variable.assign(value)
    train({})
    with pytest.raises(NonFiniteError, match="batch 6 of 8"):
        train({5: np.nan})


def test_weights_that_are_nan_are_not_saved(path):
    model = make(on_nonfinite=None)
    with pytest.raises(NonFiniteError, match="weights are NaN.*kernel"):
        fit(
            model,
            rows({5: np.nan}),
            epochs=1,
            verbose=0,
            snapshot_path=path,
            snapshot_steps=4,
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
    assert_all_close(*map(weights, models), rtol=0)


def test_embeddings_outside_the_clip_norm_are_checked():
    optimizer = make_optimizer(
        "sgd", 0.1, 5.0, count_embeddings=False, on_nonfinite="note"
    )
    table = keras.Variable(np.ones((2, 2)), name="embeddings")
    kernel = keras.Variable(np.ones(2), name="kernel")
    optimizer.build([table, kernel])
    optimizer.apply([ops.full((2, 2), np.nan), ops.ones(2)], [table, kernel])
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
