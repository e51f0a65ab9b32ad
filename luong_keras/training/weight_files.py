"""Writing and reading of Keras weight files."""

import os
import zlib
from typing import Any

import h5py
import keras
import numpy as np

from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.path_checks import no_link

_CHECKSUM = "luong_keras_crc32"
_OTHER_WEIGHTS = "Choose other weights of the run: best, last or an epoch."
_HEADER_BYTES = 1 << 20  # bytes for everything except the arrays


def check_name(path: str | os.PathLike[str]) -> None:
    """Check that a file has the name of a Keras weight file.

    Args:
        path: The file.

    Raises:
        ValueError: If the name does not end in `.weights.h5`.
    """
    if not os.fspath(path).endswith(".weights.h5"):
        raise ValueError(
            "`path` must end in '.weights.h5', the format Keras reads. "
            f"Received: path={os.fspath(path)!r}."
        )


def save_weights(model: keras.Model, path: str | os.PathLike[str]) -> None:
    """Write the weights of a model and their checksum, atomically.

    Args:
        model: The model.
        path: The file, ending in `.weights.h5`; Keras can read it too.

    Raises:
        OSError: If the file cannot be written, or the disk has no room for it.
            The message names the file.
    """
    arrays = map(keras.ops.convert_to_numpy, model.variables)
    size = _HEADER_BYTES + sum(array.nbytes for array in arrays)
    # With the size, because HDF5 ends the process if the disk is full.
    with atomic_path(path, size=size) as temporary:
        model.save_weights(temporary)
        with h5py.File(temporary, "r+") as file:
            file.attrs[_CHECKSUM] = _compute_checksum(file)


def load_weights(model: keras.Model, path: str | os.PathLike[str]) -> None:
    """Load the weights of a file into a model.

    Args:
        model: The model.
        path: The file, written by Keras.

    Raises:
        OSError: If the file is missing, damaged or cannot be read, or refers
            to other files. The message names it.
        ValueError: If a weight is NaN or infinite, or the file is a link. The
            message names the file, and the variable.
    """
    try:
        _check_arrays(path)
        model.load_weights(path)
    except FileNotFoundError:
        raise
    # HDF5 does not name the file or, if it is partly damaged, the format.
    except (OSError, KeyError, RuntimeError) as error:
        raise OSError(
            "Expected: weights that Keras has written. Received: "
            f"{os.fspath(path)!r}, which cannot be read ({error}). Copy it "
            f"again. {_OTHER_WEIGHTS}"
        ) from error
    for variable in model.variables:
        # Keras' `isfinite`, because NumPy's does not know bfloat16.
        values = keras.ops.convert_to_numpy(keras.ops.isfinite(variable))
        if not values.all():
            raise ValueError(
                f"Expected: finite weights. Received: {os.fspath(path)!r}, "
                f"where {variable.path!r} has "
                f"{values.size - np.count_nonzero(values)} of {values.size} "
                f"values that are NaN or infinite. {_OTHER_WEIGHTS}"
            )


def _check_arrays(path: str | os.PathLike[str]) -> None:
    """Check that the arrays are in this file, and those that were written."""
    with h5py.File(no_link(path)) as file:
        _list_arrays(file)  # refuses arrays of other files
        checksum = file.attrs.get(_CHECKSUM)
        if checksum is not None and checksum != _compute_checksum(file):
            raise OSError("its checksum differs")


def _compute_checksum(file: h5py.File) -> int:
    """Return a checksum of all arrays and their names."""
    checksum = 0
    for name, array in _list_arrays(file):
        checksum = zlib.crc32(name.encode(), checksum)
        checksum = zlib.crc32(np.asarray(array[()]).tobytes(), checksum)
    return checksum


def _list_arrays(file: h5py.File) -> list[tuple[str, h5py.Dataset]]:
    """Return all arrays with their names.

    Raises:
        OSError: If an array may be in another file, which a file from
            elsewhere could reveal.
    """
    items: list[tuple[str, h5py.Dataset | h5py.Group]] = []
    file.visititems(lambda name, item: items.append((name, item)))
    arrays = [item for item in items if isinstance(item[1], h5py.Dataset)]
    outside = [name for name, a in arrays if a.external or a.is_virtual]

    def visit(name: bytes, link: Any) -> None:
        if link.type != h5py.h5l.TYPE_HARD:
            outside.append(name.decode(errors="replace"))

    # `visititems` leaves out links.
    file.id.links.visit(visit, info=True)
    if outside:
        raise OSError(
            f"{outside[0]!r} is a link, or its values are in another file"
        )
    return arrays
