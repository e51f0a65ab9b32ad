"""Examples of single layers: data, execution and results."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import handwriting
import long_speech
import time_series

FOLDER = Path(__file__).parents[2] / "examples"
SPEECH = r"(?m)^[a-z-]+ +\d+ ms +\d+ MB +(\d+\.\d)%$"
PROGRAMS = [
    *("beam_search_functional", "beam_search_transformer", "dates"),
    *("copying_summariser", "handwriting", "inflection", "long_speech"),
    *("pronunciation", "quickstart", "time_series"),
]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("arguments", "status"), [("--help", 0), ("a b", 2)])
def test_examples_refuse_unknown_arguments(
    name, arguments, status, monkeypatch
):
    monkeypatch.setattr(sys, "argv", [name, *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert ended.value.code == status


def test_time_series_repeat_daily_with_noise():
    (past, mask, clock), future = time_series.make_data(400, seed=1)
    lengths = mask.sum(axis=1)
    assert set(lengths) == set(range(48, 73))
    assert not past[~mask].any()
    for row in range(400):
        day = past[row, lengths[row] - 24 : lengths[row]]
        np.testing.assert_allclose(day[:, :2], clock[row], atol=1e-12)
        past[row, :24, 2] = day[:, 2]
    differences = past[:, :24, 2] - future[..., 0]
    assert differences.var() == pytest.approx(2 * 0.3**2, rel=0.05)
    assert future.var() == pytest.approx(1 + 0.3**2, rel=0.05)


def test_handwriting_data():
    (pen, mask, shifted), digits = handwriting.make_data(50, 1, 3, 5)
    assert pen.shape == (50, 80, 2) and digits.shape == (50, 6)
    lengths = (digits != handwriting.END).sum(axis=1)
    assert set(lengths) == {3, 4, 5}
    assert (digits[range(50), lengths] == handwriting.END).all()
    moves = mask.sum(axis=1)
    assert (8 * lengths <= moves).all() and (moves <= 16 * lengths).all()
    np.testing.assert_array_equal(mask, np.arange(80) < moves[:, None])
    assert (shifted[:, 0] == handwriting.START).all()
    np.testing.assert_array_equal(shifted[:, 1:], digits[:, :-1])
    # Digits follow each other from left to right.
    assert (pen.sum(axis=1)[:, 0] > 0).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("attention", [None, "general", "local-m"])
def test_padding_does_not_change_handwriting_predictions(attention):
    model = handwriting.make_model(attention, every=3)
    (pen, mask, shifted), _ = handwriting.make_data(3, 1, 2, 4)
    few = model.predict([pen, mask, shifted], verbose=0)
    wider = np.pad(pen, ((0, 0), (0, 24), (0, 0)))
    mask = np.pad(mask, ((0, 0), (0, 24)))
    many = model.predict([wider, mask, shifted], verbose=0)
    assert few.shape == (3, 5, 11)
    np.testing.assert_allclose(few, many, atol=1e-5)


class CountingModel:
    """A model that predicts the digit after its input, and 1 at first."""

    def predict(self, inputs, batch_size, verbose):
        return np.eye(11)[(inputs[2] + 1) % 10]


def test_reading_feeds_back_its_predictions():
    shifted = np.array([[10, 5, 5], [10, 5, 5]])
    digits = np.array([[1, 2, 7], [1, 7, 10]])  # read as 1 2 3
    inputs = None, None, shifted
    assert handwriting.share_wrong(CountingModel(), inputs, digits) == 2 / 5


def test_speech_data():
    (frames, mask), sounds, weights = long_speech.make_data(8, seed=1)
    assert frames.shape == (8, 2_000, 16)
    lengths = mask.sum(axis=1)
    assert lengths.min() >= 1_200 and len(set(lengths)) > 1
    np.testing.assert_array_equal(mask, weights == 1)
    assert not frames[~mask].any()
    for row in sounds:  # two sounds in a row may be equal
        changes = np.flatnonzero(np.diff(row))
        assert np.diff(changes).min() >= 20
    (other, other_mask), other_sounds, _ = long_speech.make_data(8, seed=2)
    # A sound has the same frames in every recording.
    first = frames[mask & (sounds == 3)].mean(axis=0)
    second = other[other_mask & (other_sounds == 3)].mean(axis=0)
    assert abs(first - second).max() < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line", "limits"),
    [
        ("quickstart", r"new sequences: ([\d.]+)%", [95]),
        ("handwriting", r"(?:none|general): ([\d.]+)%", [50, -10]),
        ("long_speech", SPEECH, [75, 75, 82]),
        ("time_series", r"error ([\d.]+)\n", [0.6, -0.25, -0.2]),
    ],
)
def test_example_reaches_its_expected_score(name, line, limits, tmp_path):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [float(number) for number in re.findall(line, done.stdout)]
    # Positive limits are minima, negative ones are maxima.
    for number, limit in zip(found, limits, strict=True):
        assert number > limit if limit > 0 else number < -limit
    written = [path.name for path in tmp_path.iterdir()]
    assert written == ["time_series.png"] * (name == "time_series")
