"""Coverage of the intervals of `examples/reproduction`, by simulation.

    PYTHONPATH=examples python benchmarks/interval_coverage.py

Trials are normal with a standard deviation of 1, or of 1 and `ratio` for the
two rows of a difference. `sentences` is the mean's variance due to the choice
of the test sentences, divided by its variance due to the seeds. Widths are
medians. The program takes 15 seconds on one core.
"""

import numpy as np
from speed.command_line import make_parser

from reproduction.comparison import Spread, half_width, pool_spreads

TRIALS = (2, 3, 5, 10)
RATIOS = (1 / 3, 1, 3)
SENTENCES = (0, 0.1, 0.5, 1, 4)


def main() -> None:
    """Print tables of rows, of differences and of pooled deviations."""
    parser = make_parser(__doc__)
    parser.add_argument("--experiments", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    print("A row\n\ntrials  sentences  coverage  width")
    for trials in TRIALS:
        for share in SENTENCES:
            scores = random.normal(size=(arguments.experiments, trials))
            covered, width = of_trials(scores, share / trials, random)
            print(f"{trials:6}  {share:9}  {covered:8.1%}  {width:5.2f}")
    print("\nA difference\n\ntrials  ratio  sentences  coverage  width")
    for first in TRIALS:
        for second in [n for n in TRIALS if n >= first]:
            for ratio in RATIOS if second > first else RATIOS[1:]:
                for share in (0, 1):
                    difference_row = difference(
                        (first, second), ratio, share, random, arguments
                    )
                    print(
                        f"{first}, {second:2}   {ratio:5.2f}  {share:9}  "
                        f"{difference_row[0]:8.1%}  {difference_row[1]:5.2f}"
                    )
    print(
        "\nA difference of two rows of one trial, by the deviation of others\n"
        "\nrows of 3  ratio  pooled  coverage  width"
    )
    for others in (2, 4, 6):
        for ratio in RATIOS[1:]:
            counted, covered, width = by_others(others, ratio, random)
            print(
                f"{others:9}  {ratio:5.2f}  {counted:6.1%}  {covered:8.1%}  "
                f"{width:5.2f}"
            )


def of_trials(scores, known, random):
    """Return the coverage of zero, and the median width.

    Args:
        scores: (experiments, trials) scores with the mean zero.
        known: Variance of the mean due to the choice of the sentences.
        random: Random generator.
    """
    trials = scores.shape[1]
    drawn = random.normal(scale=known**0.5, size=len(scores))
    half = half_width(scores.var(axis=1, ddof=1) / trials, trials - 1, known)
    covered = np.abs(scores.mean(axis=1) + drawn) <= half
    return covered.mean(), 2 * np.median(half)


def difference(trials, ratio, share, random, arguments):
    """Return the same for a difference of two rows at common seeds."""
    common = min(trials)
    deviations = np.array([1, ratio])
    rows = [
        random.normal(scale=scale, size=(arguments.experiments, n))[:, :common]
        for scale, n in zip(deviations, trials, strict=True)
    ]
    known = share * float((deviations**2).sum()) / common
    return of_trials(rows[0] - rows[1], known, random)


def by_others(others, ratio, random, experiments=2_000):
    """Return the share of pooled deviations, their coverage and width.

    Half of the other rows, and one of the two, have the ratio.
    """
    found = []
    for _ in range(experiments):
        scales = np.resize([1, ratio], others)
        scores = random.normal(scale=scales[:, None], size=(others, 3))
        spread = pool_spreads(
            [Spread(float(v), 2, 0.0) for v in scores.var(axis=1, ddof=1)]
        )
        if spread is not None:
            half = half_width(2 * spread.variance, spread.degrees)
            value = random.normal() - random.normal(scale=ratio)
            found.append((abs(value) <= half, 2 * half))
    covered, widths = np.array(found, float).T
    return len(found) / experiments, covered.mean(), np.median(widths)


if __name__ == "__main__":
    main()
