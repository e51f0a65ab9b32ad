"""Errors of weight files and snapshots that cannot be read or written."""

import builtins
import errno
import os
import shutil

import h5py
import keras
import numpy as np
import pytest

from luong_keras.training.snapshot_file import read_arrays, write_arrays
from luong_keras.training.weight_files import load_weights, save_weights


def model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "best.weights.h5"
    model().save_weights(path)
    return path


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def without_start(path):
    path.write_bytes(b"\0" * 64 + path.read_bytes()[64:])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [cut, without_start, empty])
def test_errors_of_damaged_files_name_the_file(path, harm):
    harm(path)
    with pytest.raises(OSError, match=r"best\.weights\.h5', which cannot"):
        load_weights(model(), path)


KERNEL = "layers/dense/vars/0"


def soft_link(file, other):
    file.copy(KERNEL, "kernel")
    del file[KERNEL]
    file[KERNEL] = h5py.SoftLink("/kernel")


def external_link(file, other):
    del file["layers"]
    file["layers"] = h5py.ExternalLink(other, "layers")


def external_data(file, other):
    del file[KERNEL]
    file.create_dataset(KERNEL, (2, 3), "f4", external=[(other, 0, 24)])


def virtual_data(file, other):
    del file[KERNEL]
    layout = h5py.VirtualLayout((2, 3), "f4")
    layout[:] = h5py.VirtualSource(other, KERNEL, (2, 3))
    file.create_virtual_dataset(KERNEL, layout)


@pytest.mark.parametrize(
    "harm", [soft_link, external_link, external_data, virtual_data]
)
def test_arrays_of_other_files_are_not_read(path, harm):
    other = shutil.copy(path, f"{path}.other")
    with h5py.File(path, "r+") as file:
        harm(file, other)
    message = r"best\.weights\.h5'.*'layers.* is a link, or its values are in"
    with pytest.raises(OSError, match=message):
        load_weights(model(), path)
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(ValueError, match="Received: a link to"):
        load_weights(model(), path)


def test_flipped_bits_are_detected(tmp_path):
    path = tmp_path / "a.weights.h5"
    save_weights(model(), path)
    loaded = model()
    load_weights(loaded, path)
    content = bytearray(path.read_bytes())
    kernel = loaded.get_weights()[0].tobytes()
    content[content.index(kernel) + 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"read \(its checksum differs"):
        load_weights(model(), path)


def test_full_disks_are_reported_before_writing(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"best\.weights\.h5 was not.*is full"):
        save_weights(model(), tmp_path / "best.weights.h5")
    assert not list(tmp_path.iterdir())


def fail(*_, **__):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_disk_errors_name_the_file(path, monkeypatch):
    monkeypatch.setattr(h5py, "File", fail)
    with pytest.raises(OSError, match=r"best\.weights\.h5'.*Input/output"):
        load_weights(model(), path)


def test_missing_files_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        load_weights(model(), tmp_path / "none.weights.h5")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_errors_name_the_non_finite_weights(tmp_path, value, dtype):
    path = tmp_path / "best.weights.h5"
    layers = [keras.layers.Dense(3, dtype=dtype, name=name) for name in "ab"]
    bad = keras.Sequential([keras.Input((2,)), *layers])
    kernel = np.ones((3, 3))
    kernel[1, 2] = value
    layers[1].kernel.assign(kernel)
    bad.save_weights(path)
    message = r"best\.weights\.h5.*b/kernel.*1 of 9"
    with pytest.raises(ValueError, match=message):
        load_weights(bad, path)


@pytest.mark.parametrize("step", ["open", "read"])
def test_errors_of_unreadable_snapshots_name_the_file(
    tmp_path, monkeypatch, step
):
    path = tmp_path / "snapshot.npz"
    write_arrays(path, {}, {"x": np.zeros(3)})
    place, name = (builtins, "open") if step == "open" else (np, "load")
    monkeypatch.setattr(place, name, fail)
    with pytest.raises(ValueError, match=r"snapshot\.npz"):
        read_arrays(path)
