"""Intervals of few trials: quantiles of tables, and coverage by simulation."""

import dataclasses

import numpy as np
import pytest

from reproduction.comparison import Resampling
from reproduction.intervals import half_width, student_quantile
from tests.reproduction.made_up_rows import record

TRIALS = (2, 3, 5, 10)


@pytest.mark.parametrize(
    ("degrees", "level", "expected"),
    # Of a printed table of Student's t.
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (4, 0.95, 2.776),
        (9, 0.95, 2.262),
        (12, 0.95, 2.179),
        (120, 0.95, 1.980),
        (1e9, 0.95, 1.960),
        (2, 0.90, 2.920),
        (9, 0.99, 3.250),
    ],
)
def test_quantiles_are_those_of_a_table(degrees, level, expected):
    assert student_quantile(degrees, level) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(("degrees", "level"), [(0.5, 0.95), (3, 95)])
def test_a_quantile_that_there_is_not(degrees, level):
    with pytest.raises(ValueError, match="at least 1 degree of freedom"):
        student_quantile(degrees, level)


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("sentences", [0, 0.5, 1, 4])
def test_intervals_of_few_trials_cover_95_percent(trials, sentences):
    random = np.random.default_rng(2)
    scores = random.normal(size=(40_000, trials))
    known = sentences / trials
    means = scores.mean(axis=1) + random.normal(scale=known**0.5, size=40_000)
    half = half_width(scores.var(axis=1, ddof=1) / trials, trials - 1, known)
    covered = np.mean(np.abs(means) <= half)
    assert 0.945 < covered < 0.9725
    # Wider would be no answer.
    assert np.median(half) < 1.1 * student_quantile(trials - 1) * np.sqrt(
        (1 + sentences) / trials
    )


def drawn(row, trials, deviation, sentences, random):
    """Trials whose mean token costs 1 but for chance of three sources."""
    made = record(row)
    count = len(sentences)
    own = sentences + random.normal(scale=0.02, size=count)
    found = []
    for seed in range(1, trials + 1):
        costs = 1 + own + random.normal(scale=0.02, size=count)
        costs += random.normal(scale=deviation)
        columns = {"source_lengths": [5] * count, "tokens": [1] * count}
        columns["negative_log_likelihood"] = costs.tolist()
        one = dataclasses.replace(made, seeds=(seed,), sentences=columns)
        found.append(one)
    return found


@pytest.mark.parametrize(
    ("trials", "deviations"), [((3, 3), (0.02, 0.02)), ((5, 3), (0.005, 0.015))]
)
def test_intervals_of_rows_cover_95_percent(trials, deviations):
    random = np.random.default_rng(3)
    terms = {"base": 1, "reverse": -1}
    covered = {"difference": 0, "row": 0}
    experiments = 800
    for _ in range(experiments):
        sentences = random.normal(scale=0.1, size=60)
        rows = {
            row: drawn(row, n, deviation, sentences, random)
            for row, n, deviation in zip(terms, trials, deviations, strict=True)
        }
        resampling = Resampling(rows, 60)
        found = resampling.difference(
            [(sign, row) for row, sign in terms.items()], "perplexity"
        )
        covered["difference"] += found.low <= 0 <= found.high
        found = resampling.difference([(1, "base")], "perplexity")
        covered["row"] += found.low <= np.e <= found.high
    for times in covered.values():
        assert 0.93 <= times / experiments <= 0.975
