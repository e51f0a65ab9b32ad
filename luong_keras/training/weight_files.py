"""Writing, reading and averaging of Keras weight files."""

import contextlib
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import h5py
import keras
import ml_dtypes
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
    with _explain_damage(path, f"Copy it again. {_OTHER_WEIGHTS}"):
        _check_arrays(path)
        model.load_weights(path)
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


@contextlib.contextmanager
def _explain_damage(
    path: str | os.PathLike[str], remedy: str
) -> Iterator[None]:
    """Name the file in an error, and the remedy."""
    try:
        yield
    except FileNotFoundError:
        raise
    # HDF5 does not name the file or, if it is partly damaged, the format.
    except (OSError, KeyError, RuntimeError) as error:
        raise OSError(
            "Expected: weights that Keras has written. Received: "
            f"{os.fspath(path)!r}, which cannot be read ({error}). {remedy}"
        ) from error


def _check_arrays(path: str | os.PathLike[str]) -> None:
    """Check that the arrays are in this file, and those that were written."""
    with h5py.File(no_link(path)) as file:
        _list_arrays(file)  # refuses arrays of other files
        checksum = file.attrs.get(_CHECKSUM)
        if checksum is not None and checksum != _compute_checksum(file):
            raise OSError("its checksum differs")


def write_mean(
    paths: Sequence[str | os.PathLike[str]], mean: str | os.PathLike[str]
) -> None:
    """Write the mean of several weight files of one model.

    The mean is computed in float64 and rounded to the type of the weights. No
    model changes.

    Args:
        paths: The files. Arrays of other than floating-point numbers come from
            the last one.
        mean: The file to write or to replace, atomically.

    Raises:
        OSError: If a file is missing or damaged, refers to other files, or
            cannot be written.
        ValueError: If a file is a link.

    Example:
        >>> import keras, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        >>> paths = [f"{folder}/{name}.weights.h5" for name in "abc"]
        >>> for path, value in zip(paths, (1.0, 4.0)):
        ...     model.layers[0].set_weights([np.array([[value]]), np.zeros(1)])
        ...     model.save_weights(path)
        >>> write_mean(paths[:2], paths[2])
        >>> model.load_weights(paths[2])
        >>> float(model.layers[0].kernel[0, 0])
        2.5
    """
    for path in paths:
        with _explain_damage(path, "Remove it for a mean of the others."):
            _check_arrays(path)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(h5py.File(path)) for path in paths]
        temporary = stack.enter_context(atomic_path(mean))
        shutil.copyfile(paths[-1], temporary)
        with h5py.File(temporary, "r+") as result:
            for name, array in _list_arrays(result):
                # HDF5 stores bfloat16 as raw bytes.
                is_bfloat16 = array.attrs.get("dtype") == "bfloat16"
                dtype = ml_dtypes.bfloat16 if is_bfloat16 else array.dtype
                if is_bfloat16 or array.dtype.kind == "f":
                    arrays = [file[name][()].view(dtype) for file in files]
                    total = sum(array.astype("float64") for array in arrays)
                    mean_array = (total / len(files)).astype(dtype)
                    array[...] = mean_array.view(array.dtype)
            result.attrs[_CHECKSUM] = _compute_checksum(result)


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
