"""Golden numbers, and comparisons that leave none out.

The numbers were computed in double precision by the program that the authors
of the paper released. They are in the folder `data`, or in a folder of the same
schema that the environment variable LUONG_KERAS_GOLDEN names.
"""

import json
import os
from pathlib import Path

import numpy as np

FLOAT64 = {"atol": 1e-10, "rtol": 1e-8}


def golden_path(name):
    """Return the path of a golden file."""
    folder = os.environ.get("LUONG_KERAS_GOLDEN")
    return Path(folder or Path(__file__).with_name("data")) / name


def cases(file):
    """Return the names of the cases of a `.npz` file, in its order."""
    with np.load(golden_path(file)) as arrays:
        return list(dict.fromkeys(key.split("/")[0] for key in arrays.files))


def open_case(file, name):
    """Return the arrays of a case, and its `meta` as a dictionary."""
    start = f"{name}/"
    with np.load(golden_path(file)) as arrays:
        found = {
            key.removeprefix(start): arrays[key]
            for key in arrays.files
            if key.startswith(start)
        }
    meta = json.loads(str(found.pop("meta"))) if "meta" in found else {}
    return found, meta


class Comparison:
    """A comparison of one case.

    Args:
        expected: Arrays of the case, by name.
        inputs: Names of the arrays that the computation reads; all other
            arrays must be compared before `finish`.
        single: Whether the tolerances are those of float32.
    """

    def __init__(self, expected, inputs=(), single=False):
        self.expected = expected
        self.single = single
        self.remaining = set(expected) - set(inputs)

    def check(self, name, found, where=None, gradient=False):
        """Compare an array; `where` selects the entries that count."""
        expected = np.asarray(self.expected[name])
        found = np.asarray(found)
        assert found.shape == expected.shape, (
            f"{name}: {found.shape}, not {expected.shape}"
        )
        if where is not None:
            where = np.broadcast_to(np.asarray(where, bool), expected.shape)
            expected, found = expected[where], found[where]
        np.testing.assert_allclose(
            found, expected, err_msg=name, **self._tolerance(expected, gradient)
        )
        self.remaining.discard(name)

    def _tolerance(self, expected, gradient):
        if not self.single:
            return FLOAT64
        if not gradient:
            return {"rtol": 0, "atol": 1e-5}
        # Relative to the largest entry, at least 1e-3 for arrays of zeros.
        largest = np.max(np.abs(expected), initial=1e-3)
        return {"rtol": 0, "atol": 1e-4 * largest}

    def finish(self):
        """Fail if an array was not compared."""
        assert not self.remaining, f"not compared: {sorted(self.remaining)}"
