"""Named arrays and a JSON header in one checked file."""

import contextlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.path_checks import no_link

FORMAT_VERSION = 1
_HEADER = "header"


def write_arrays(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write a `.npz` file; a crash leaves the old file or the new one.

    Once the new file is on disk, the old file becomes `previous_path`. If the
    old file is damaged, the earlier `previous_path` stays instead.

    Args:
        path: The file to write or to replace.
        header: JSON-compatible values. The format version and the names of
            the arrays are added.
        arrays: The arrays by name. Types that NumPy files do not support
            (bfloat16) are written as raw bytes.
    """
    arrays = {name: _as_raw_bytes(array) for name, array in arrays.items()}
    header = {
        "format_version": FORMAT_VERSION,
        "arrays": sorted(arrays),
        **header,
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    size = sum(array.nbytes for array in arrays.values())
    with atomic_path(path, _keep_previous(Path(path)), size) as temporary:
        content: dict[str, Any] = {_HEADER: text, **arrays}
        with open(temporary, "wb") as file:
            np.savez(file, **content)


def previous_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the previous snapshot.

    Example:
        >>> previous_path("run/snapshot.npz").as_posix()
        'run/snapshot.previous.npz'
    """
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


@contextlib.contextmanager
def _keep_previous(path: Path) -> Iterator[None]:
    """Keep the old file as `previous_path`, unless it is damaged."""
    try:
        with _opened(path) as file:
            # It reads a megabyte at a time: the arrays may be many gigabytes.
            is_damaged = file.testzip() is not None
    except (FileNotFoundError, ValueError):
        is_damaged = True
    if is_damaged:
        yield
        return
    link = path.with_name(f".second-{path.name}")
    try:
        link.unlink(missing_ok=True)
        try:
            os.link(path, link)
        except OSError:  # Without links, only `previous_path` exists briefly.
            os.replace(path, previous_path(path))
            yield
        else:
            yield
            os.replace(link, previous_path(path))
    finally:
        link.unlink(missing_ok=True)


def read_arrays(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read and check a file written by `write_arrays`.

    Args:
        path: The file.

    Returns:
        The header and the arrays; raw bytes become bfloat16 again.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is damaged, a link, or of another format
            version.
    """
    with _opened(path) as file:
        # Only a member that is read whole has its CRC-32 checked.
        arrays = {
            name.removesuffix(".npy"): _decode_array(file.read(name))
            for name in file.namelist()
        }
        header = json.loads(arrays.pop(_HEADER).tobytes())
        version = header["format_version"]
        # Earlier versions did not write the names.
        names = header.pop("arrays", sorted(arrays))
    if version != FORMAT_VERSION:
        raise ValueError(
            f"Expected a snapshot of format version {FORMAT_VERSION}. "
            f"Received: version {version} in {str(path)!r}. Finish the run "
            "with the release that began it, or delete the file to start "
            "again."
        )
    if names != sorted(arrays):
        raise _damaged_error(path, "arrays are missing")
    return header, arrays


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open a snapshot, and report each error of the block as a damaged file."""
    no_link(path)
    try:
        with open(path, "rb") as raw, zipfile.ZipFile(raw) as file:
            yield file
    except FileNotFoundError:
        raise
    except _UNREADABLE as error:
        raise _damaged_error(path, error) from error


# Errors of NumPy, zipfile and json for truncated or overwritten files.
_UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def _as_raw_bytes(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "V":
        return array.view(f"V{array.dtype.itemsize}")
    return array


def _decode_array(content: bytes) -> np.ndarray:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    return array.view(ml_dtypes.bfloat16) if array.dtype == "V2" else array


def _damaged_error(path: str | os.PathLike[str], reason: object) -> ValueError:
    return ValueError(
        f"The file {str(path)!r} is damaged or not a snapshot ({reason}). Put "
        "a copy in its place, or use a new folder for a new run."
    )
