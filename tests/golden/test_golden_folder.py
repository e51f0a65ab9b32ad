"""Another golden folder, and comparisons that leave nothing out."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.golden.golden_files import Comparison, golden_path

ROOT = Path(__file__).parents[2]


def run_in(folder):
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-k", "float64", "tests/golden/test_lstm_unit.py"),
        ],
        cwd=ROOT,
        env={**os.environ, "LUONG_KERAS_GOLDEN": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.tensorflow
def test_another_folder_is_read_completely(tmp_path):
    with np.load(golden_path("lstm_unit.npz")) as arrays:
        case = next(iter(arrays.files)).split("/")[0]
        renamed = {
            key.replace(case, "another", 1): arrays[key]
            for key in arrays.files
            if key.startswith(f"{case}/")
        }
    np.savez(tmp_path / "lstm_unit.npz", **renamed)
    result = run_in(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout
    renamed["another/d_W"] = renamed["another/d_W"] + 1e-7
    np.savez(tmp_path / "lstm_unit.npz", **renamed)
    result = run_in(tmp_path)
    assert result.returncode == 1
    assert "d_W" in result.stdout


def test_missing_comparisons_are_named():
    comparison = Comparison({"a": np.ones(2), "b": np.ones(3), "x": 1}, ["x"])
    comparison.check("a", np.ones(2) + 1e-12)
    with pytest.raises(AssertionError, match=r"not compared: \['b'\]"):
        comparison.finish()
    with pytest.raises(AssertionError, match="b"):
        comparison.check("b", np.ones(3) + 1e-6)
    with pytest.raises(AssertionError, match="b"):
        comparison.check("b", np.ones(2))
