import errno
import os
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from luong_keras.files.atomic_file import atomic_path
from luong_keras.training.interruption import SnapshotCallback
from luong_keras.training.snapshot import Snapshot
from luong_keras.training.snapshot_file import previous_path
from luong_keras.training.weight_callbacks import BestWeights


def make_model(units=2, dtype="float32", names=(None, None)):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(units, dtype=dtype, name=names[0]),
            # Without a seed torch draws from a state of its own.
            keras.layers.Dropout(0.5, seed=3),
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


def values(model):
    return [
        keras.ops.convert_to_numpy(variable)
        for variable in [*model.variables, *model.optimizer.variables]
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "snapshot.npz"


def test_a_model_goes_on_with_the_same_bits(path):
    best = BestWeights("best.weights.h5")
    best.best = 0.1
    model = make_model()
    train(model, 0)
    Snapshot.capture(model, 1, [best]).write(path)
    train(model, 1)

    # Another model of the process: its layers have other automatic names.
    other, other_best = make_model(), BestWeights("best.weights.h5")
    assert SnapshotCallback(path, callbacks=[other_best]).restore(other) == 1
    assert other_best.best == 0.1
    train(other, 1)  # With dropout, so with the same seed.
    for ours, theirs in zip(values(other), values(model), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_without_a_file_a_run_begins(path):
    assert SnapshotCallback(path).restore(make_model()) == 0


def test_bfloat16_survives(path):
    model = make_model(dtype="bfloat16")
    Snapshot.capture(model, 1).write(path)
    other = make_model(dtype="bfloat16")
    SnapshotCallback(path).restore(other)
    for ours, theirs in zip(values(other), values(model), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


def test_damage_is_named(path):
    model = make_model()
    Snapshot.capture(model, 1).write(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in [0, 1, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"snapshot\.npz' is damaged"):
            SnapshotCallback(path).restore(model)
    before = values(model)
    named = 0
    for place in rng.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        try:
            SnapshotCallback(path).restore(
                model
            )  # Zip has bytes that say nothing.
        except ValueError as error:
            assert "snapshot.npz' is damaged" in str(error)
            named += 1
        for ours, theirs in zip(values(model), before, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert named > 30


def test_the_checksum_covers_the_header(path):
    model = make_model()
    Snapshot.capture(model, 1).write(path)
    with np.load(path) as file:
        arrays = dict(file)
    text = (
        arrays["header"].tobytes().replace(b'"position": 1', b'"position": 2')
    )
    arrays["header"] = np.frombuffer(text, np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="the checksum differs"):
        SnapshotCallback(path).restore(model)


def test_another_format_version_is_named(path, monkeypatch):
    monkeypatch.setattr("luong_keras.training.snapshot_file.FORMAT_VERSION", 99)
    model = make_model()
    Snapshot.capture(model, 1).write(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="Received: version 99"):
        SnapshotCallback(path).restore(model)


def test_another_model_is_refused_and_left_alone(path):
    model = make_model(names=("left", "right"))
    Snapshot.capture(model, 1).write(path)
    other = make_model(units=5, names=("left", "wrong"))
    other.optimizer.build(other.trainable_variables)
    before = values(other)
    with pytest.raises(ValueError) as caught:
        SnapshotCallback(path).restore(other)
    text = str(caught.value)
    missing, extra, shapes = text.splitlines()[1:4]
    assert "not in the snapshot" in missing and "wrong/kernel" in missing
    assert "only in the snapshot" in extra and "right/kernel" in extra
    assert "left/kernel (3, 2) in the snapshot, (3, 5) in the model" in shapes
    for ours, theirs in zip(values(other), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_without_optimizer_is_refused():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="model.compile"):
        Snapshot.capture(model, 1)


def test_a_write_that_fails_leaves_the_old_file(path):
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        raise RuntimeError
    assert path.read_text() == "old"
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def damaged(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def three_snapshots(path):
    model = make_model()
    for step in (1, 2, 3):
        train(model, step)
        Snapshot.capture(model, step).write(path)
    return SnapshotCallback(path)


@pytest.mark.parametrize("links", [True, False])
def test_the_snapshot_before_is_kept(path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    three_snapshots(path)
    assert Snapshot.read(path).position == 3
    assert Snapshot.read(previous_path(path)).position == 2
    found = {p.name for p in path.parent.iterdir()}
    assert found == {"snapshot.npz", "snapshot.previous.npz"}


def no_links(*arguments):
    raise OSError(errno.EPERM, "no links here")


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [damaged, emptied, Path.unlink])
def test_the_older_snapshot_stands_in_for_the_newer(path, harm):
    callback = three_snapshots(path)
    harm(path)
    with pytest.warns(UserWarning, match="previous.npz, after batch 2"):
        assert callback.restore(make_model()) == 2


def test_two_damaged_snapshots_are_told(path):
    callback = three_snapshots(path)
    damaged(path)
    damaged(previous_path(path))
    with pytest.raises(ValueError, match=r"previous\.npz' is damaged"):
        callback.restore(make_model())
    assert path.exists()


def test_a_first_snapshot_that_is_damaged_is_told(path):
    Snapshot.capture(make_model(), 1).write(path)
    damaged(path)
    with pytest.raises(ValueError, match=r"snapshot\.npz' is damaged"):
        SnapshotCallback(path).restore(make_model())
    assert SnapshotCallback(path.with_name("other.npz")).restore(None) == 0


def test_room_is_looked_for_before_a_snapshot(path, monkeypatch):
    Snapshot.capture(make_model(), 1).write(path)
    usage = shutil.disk_usage(path)._replace(free=9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"snapshot\.npz is as it was: the disk"):
        Snapshot.capture(make_model(), 2).write(path)
    assert Snapshot.read(path).position == 1
    assert [p.name for p in path.parent.iterdir()] == ["snapshot.npz"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_on_disk_leaves_both(path, monkeypatch, call):
    callback = three_snapshots(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, no_links)
        with pytest.raises(OSError, match="no permission to write"):
            Snapshot.capture(make_model(), 4).write(path)
    assert Snapshot.read(path).position == 3
    assert Snapshot.read(previous_path(path)).position == 2
    assert not path.samefile(previous_path(path))
    assert len([*path.parent.iterdir()]) == 2
    assert callback.restore(make_model()) == 3


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_a_damaged_snapshot_does_not_take_the_place_of_a_whole_one(
    path, monkeypatch, links, fails
):
    callback = three_snapshots(path)
    damaged(path)
    with monkeypatch.context() as patch:
        if not links:
            patch.setattr(os, "link", no_links)
        if fails:
            patch.setattr(os, "fsync", no_links)
            with pytest.raises(OSError, match="no permission to write"):
                Snapshot.capture(make_model(), 4).write(path)
        else:
            Snapshot.capture(make_model(), 4).write(path)
    assert Snapshot.read(previous_path(path)).position == 2
    if fails:
        with pytest.warns(UserWarning, match="previous.npz, after batch 2"):
            assert callback.restore(make_model()) == 2
    else:
        assert callback.restore(make_model()) == 4
