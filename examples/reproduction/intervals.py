"""Confidence intervals of few trials, by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95
# Exponent of the trials' share of the variance, which weights the two
# quantiles. With 1, as in Cochran and Cox (1950), coverage is up to 98 % at two
# trials; `benchmarks/interval_coverage.py` prints that of this value.
_SHARE_POWER = 1.3


def student_quantile(degrees: float, level: float = LEVEL) -> float:
    """Two-sided quantile of Student's t.

    With t = sqrt(degrees) tan(angle), the density of the angle is
    proportional to cos(angle) ** (degrees - 1), which is integrated by the
    trapezoidal rule.

    Args:
        degrees: of freedom, 1 or more.
        level: the probability.

    Raises:
        ValueError: for fewer degrees, or no probability between 0 and 1.

    Example:
        >>> [round(student_quantile(n), 2) for n in (1, 2, 10)]
        [12.71, 4.3, 2.23]
    """
    if degrees < 1 or not 0 < level < 1:
        raise ValueError(
            "Expected: at least 1 degree of freedom and a level between 0 and "
            f"1. Received: degrees={degrees}, level={level}."
        )
    degrees = min(degrees, 10_000)  # above, normal but for 1 in 10,000
    angles = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos(angles) ** (degrees - 1)
    areas = np.append(0, np.cumsum(density[1:] + density[:-1]))
    angle = np.interp(level * areas[-1], areas, angles)
    return float(degrees**0.5 * np.tan(angle))


def half_width(
    variance: ArrayLike, degrees: float, known: ArrayLike = 0.0
) -> np.ndarray:
    """Half of the 95 % confidence interval of a mean.

    `variance` is estimated from few trials, `known` from so many sentences
    that it counts as known. The quantile lies between Student's, which is
    right where only the trials vary, and the normal one, as in the test of
    Cochran and Cox (1950).

    Args:
        variance: of the mean, by the spread of the trials.
        degrees: of freedom of that estimate.
        known: variance of the mean by the choice of the sentences.

    Example:
        >>> half_width(1.0, 2, known=[0.0, 1.0, 100.0]).round(2).tolist()
        [4.3, 4.12, 19.76]
    """
    known = np.asarray(known, float)
    total = np.asarray(variance, float) + known
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share = 1 - known / np.maximum(total, np.finfo(float).tiny)
    student = student_quantile(degrees)
    quantile = normal + (student - normal) * share**_SHARE_POWER
    return quantile * np.sqrt(total)


def equal_variances_p(
    variances: Sequence[float], degrees: Sequence[int], samples: int = 10_000
) -> float:
    """The p value of Bartlett's test that normal variances are equal.

    The statistic's law under equal variances is simulated, since the usual
    approximation is one of many trials.

    Args:
        variances: of the groups.
        degrees: of freedom of each.
        samples: of the simulation.

    Example:
        >>> equal_variances_p([1.0, 1.2, 0.9], [2, 2, 2]) > 0.9
        True
        >>> equal_variances_p([1.0, 900.0], [4, 4]) < 0.01
        True
    """
    freedom = np.asarray(degrees, float)

    def statistic(found: np.ndarray) -> np.ndarray:
        found = np.maximum(found, np.finfo(float).tiny)
        pooled = found @ freedom / freedom.sum()
        return freedom.sum() * np.log(pooled) - np.log(found) @ freedom

    random = np.random.default_rng(1)
    drawn = random.chisquare(freedom, (samples, len(freedom))) / freedom
    observed = statistic(np.asarray(variances, float))
    return float(np.mean(statistic(drawn) >= observed))
