import contextlib
import dataclasses
import errno
import json
import os
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from luong_keras.training.interruption import SnapshotCallback
from luong_keras.training.optimizers import ClippedAdam, ClippedSGD
from luong_keras.training.snapshot import Snapshot
from luong_keras.training.snapshot_file import previous_path
from luong_keras.training.weight_callbacks import BestWeights
from tests.layer_checks import assert_all_close
from tests.training.fit_helpers import state_of

PREVIOUS = "previous.npz, after batch 2"


@pytest.mark.parametrize(
    "make, name, old",
    [
        (ClippedSGD, "clipped_sgd", "SGD"),
        (ClippedAdam, "clipped_adam", "adam"),
        (keras.optimizers.AdamW, "adam_w", "adamw"),
        (keras.optimizers.RMSprop, "rms_prop", "rmsprop"),
        (keras.optimizers.Adam, "adam", "adamw"),
    ],
)
def test_optimizers_may_have_the_names_of_other_keras_versions(
    path, make, name, old
):
    model, resumed = make_model(), make_model()
    for each in (model, resumed):
        each.compile(make(0.1, name=name), "mse", jit_compile=False)
    train(model, 0)
    snapshot = Snapshot.capture(model, 1)
    arrays = {
        key.replace(f"optimizer/{name}/", f"optimizer/{old}/"): array
        for key, array in snapshot.arrays.items()
    }
    dataclasses.replace(snapshot, arrays=arrays).write(path)
    if name == "adam":  # another optimizer, with the same variables
        with pytest.raises(ValueError, match="another model"):
            SnapshotCallback(path).restore(resumed)
        return
    SnapshotCallback(path).restore(resumed)
    assert_all_close(state_of(model), state_of(resumed), rtol=0)


def make_model(units=2, dtype="float32", names=(None, None)):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(units, dtype=dtype, name=names[0]),
            # Without a seed, torch draws from its own generator.
            keras.layers.Dropout(0.5),
            keras.layers.Dense(units, dtype=dtype, name=names[1]),
        ]
    )
    model.compile("adam", "mse", jit_compile=False)
    return model


def train(model, step):
    rng = np.random.default_rng(step)
    inputs = rng.normal(size=(4, 3)).astype("float32")
    targets = np.ones((4, model.output_shape[-1]), "float32")
    model.train_on_batch(inputs, targets)


def saved_model(path, **options):
    """Return a model whose snapshot, of the first batch, is written."""
    model = make_model(**options)
    Snapshot.capture(model, 1).write(path)
    return model


@contextlib.contextmanager
def changed_arrays(path):
    """Yield the arrays of a snapshot, and write what becomes of them."""
    with np.load(path) as file:
        arrays = dict(file)
    yield arrays
    np.savez(path, **arrays)


def test_restored_models_train_to_the_same_bits(path):
    best = BestWeights("best.weights.h5")
    best.best = 0.1
    model = make_model()
    train(model, 0)
    Snapshot.capture(model, 1, [best]).write(path)
    train(model, 1)

    # The layers of a second model have other automatic names.
    other, other_best = make_model(), BestWeights("best.weights.h5")
    assert SnapshotCallback(path, callbacks=[other_best]).restore(other) == 1
    assert other_best.best == 0.1
    train(other, 1)  # Dropout needs the same seed.
    assert_all_close(state_of(other), state_of(model), rtol=0)


def test_training_starts_at_0_without_a_snapshot(path):
    assert SnapshotCallback(path).restore(make_model()) == 0


def test_bfloat16_weights_are_restored_exactly(path):
    model = saved_model(path, dtype="bfloat16")
    other = make_model(dtype="bfloat16")
    SnapshotCallback(path).restore(other)
    for ours, theirs in zip(state_of(other), state_of(model), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
    Snapshot.read(path).write(path)  # The file can be written again.
    assert Snapshot.read(path).position == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_bfloat16_weights_are_converted_for_other_types(path, dtype):
    model = make_model(dtype="bfloat16")
    model.layers[0].bias.assign([1.5, -0.25])
    Snapshot.capture(model, 1).write(path)
    other = make_model(dtype=dtype)
    SnapshotCallback(path).restore(other)
    bias = keras.ops.convert_to_numpy(other.layers[0].bias)
    assert bias.dtype == dtype and bias.tolist() == [1.5, -0.25]


def test_callbacks_of_one_class_keep_their_states_in_another_order(path):
    def make():
        best = BestWeights("best.weights.h5", "val_bleu")
        return best, BestWeights("fit.weights.h5", "val_loss", "min")

    model, callbacks = make_model(), make()
    callbacks[0].best, callbacks[1].best = 30.0, 2.0
    Snapshot.capture(model, 1, callbacks).write(path)
    by_bleu, by_loss = make()
    SnapshotCallback(path, callbacks=[by_loss, by_bleu]).restore(model)
    assert (by_bleu.best, by_loss.best) == (30.0, 2.0)


def test_damaged_snapshots_are_refused_by_name(path):
    model = saved_model(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in [0, 1, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"snapshot\.npz' is damaged"):
            SnapshotCallback(path).restore(model)
    before = state_of(model)
    detected = 0
    for place in rng.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        try:
            # Some bytes of a zip file are not checked.
            SnapshotCallback(path).restore(model)
        except ValueError as error:
            assert "snapshot.npz' is damaged" in str(error)
            detected += 1
        assert_all_close(state_of(model), before, rtol=0)
    assert detected > 30


def test_snapshots_without_some_arrays_are_refused(path):
    model = saved_model(path)
    with changed_arrays(path) as arrays:
        arrays.popitem()
    with pytest.raises(ValueError, match="is damaged.*arrays are missing"):
        SnapshotCallback(path).restore(model)


def test_the_checksum_covers_the_shapes(path):
    Snapshot(1, {"model/x": np.ones((4000, 3))}, {}).write(path)
    content = path.read_bytes()
    assert content.count(b"(4000, 3)") == 1
    path.write_bytes(content.replace(b"(4000, 3)", b"(2000, 3)"))
    with pytest.raises(ValueError, match="is damaged.*CRC-32"):
        Snapshot.read(path)


def test_snapshots_of_earlier_versions_are_read(path):
    """Read a header with a digest, and states named only by the class."""
    model, best = saved_model(path), BestWeights("best.weights.h5")
    with changed_arrays(path) as arrays:
        header = json.loads(arrays["header"].tobytes())
        del header["arrays"]
        header |= {"callbacks": {"BestWeights": {"best": 0.5}}, "sha256": "0a"}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    assert SnapshotCallback(path, callbacks=[best]).restore(model) == 1
    assert best.best == 0.5


def test_other_format_versions_are_refused(path, monkeypatch):
    monkeypatch.setattr("luong_keras.training.snapshot_file.FORMAT_VERSION", 99)
    model = saved_model(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="Received: version 99"):
        SnapshotCallback(path).restore(model)


def test_snapshots_of_other_models_are_refused_without_changes(path):
    saved_model(path, names=("left", "right"))
    other = make_model(units=5, names=("left", "wrong"))
    other.optimizer.build(other.trainable_variables)
    before = state_of(other)
    with pytest.raises(ValueError) as caught:
        SnapshotCallback(path).restore(other)
    text = str(caught.value)
    missing, extra, shapes = text.splitlines()[1:4]
    assert "not in the snapshot" in missing and "wrong/kernel" in missing
    assert "only in the snapshot" in extra and "right/kernel" in extra
    assert "left/kernel (3, 2) in the snapshot, (3, 5) in the model" in shapes
    assert_all_close(state_of(other), before, rtol=0)


def test_models_without_an_optimizer_are_refused():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="model.compile"):
        Snapshot.capture(model, 1)


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def write_three_snapshots(path):
    model = make_model()
    for step in (1, 2, 3):
        train(model, step)
        Snapshot.capture(model, step).write(path)
    return SnapshotCallback(path)


@pytest.mark.parametrize("links", [True, False])
def test_the_previous_snapshot_is_kept(path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    write_three_snapshots(path)
    assert Snapshot.read(path).position == 3
    assert Snapshot.read(previous_path(path)).position == 2
    found = {p.name for p in path.parent.iterdir()}
    assert found == {"snapshot.npz", "snapshot.previous.npz"}


def refuse(*arguments):
    raise OSError(errno.EPERM, "no links here")


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [flip_a_bit, empty, Path.unlink])
def test_the_previous_snapshot_replaces_a_damaged_one(path, harm):
    callback = write_three_snapshots(path)
    harm(path)
    with pytest.warns(UserWarning, match=PREVIOUS):
        assert callback.restore(make_model()) == 2


def test_two_damaged_snapshots_raise_an_error(path):
    callback = write_three_snapshots(path)
    flip_a_bit(path)
    flip_a_bit(previous_path(path))
    with pytest.raises(ValueError, match=r"previous\.npz' is damaged"):
        callback.restore(make_model())
    assert path.exists()


def test_free_space_is_checked_before_a_snapshot(path, monkeypatch):
    saved_model(path)
    usage = shutil.disk_usage(path)._replace(free=9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"snapshot\.npz is as it was: the disk"):
        Snapshot.capture(make_model(), 2).write(path)
    assert Snapshot.read(path).position == 1
    assert [p.name for p in path.parent.iterdir()] == ["snapshot.npz"]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failed_disk_calls_keep_both_snapshots(path, monkeypatch, call):
    callback = write_three_snapshots(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(OSError, match="no permission to write"):
            Snapshot.capture(make_model(), 4).write(path)
    assert Snapshot.read(path).position == 3
    assert Snapshot.read(previous_path(path)).position == 2
    assert not path.samefile(previous_path(path))
    assert len([*path.parent.iterdir()]) == 2
    assert callback.restore(make_model()) == 3


@pytest.mark.slow_after_first
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_damaged_snapshots_do_not_replace_the_previous_one(
    path, monkeypatch, links, fails
):
    callback = write_three_snapshots(path)
    flip_a_bit(path)
    error = warning = contextlib.nullcontext()
    with monkeypatch.context() as patch:
        if not links:
            patch.setattr(os, "link", refuse)
        if fails:
            patch.setattr(os, "fsync", refuse)
            error = pytest.raises(OSError, match="no permission to write")
            warning = pytest.warns(UserWarning, match=PREVIOUS)
        with error:
            Snapshot.capture(make_model(), 4).write(path)
    assert Snapshot.read(previous_path(path)).position == 2
    with warning:
        assert callback.restore(make_model()) == (2 if fails else 4)
