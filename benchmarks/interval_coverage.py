"""Coverage of the intervals of `examples/reproduction`, by simulation.

    PYTHONPATH=examples python benchmarks/interval_coverage.py

Trials are normal with a standard deviation of 1, or of 1 and `ratio` for the
two rows of a difference. `sentences` is the mean's variance due to the choice
of the test sentences, divided by its variance due to the seeds. Widths are
medians. The program takes a minute on one core.
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
    for paired, title in ((True, "at common"), (False, "without common")):
        print(f"\nA difference {title} seeds\n")
        print("trials  ratio  sentences  coverage  width")
        for first in TRIALS:
            for second in [first] if paired else TRIALS:
                for ratio in RATIOS[1:]:
                    for share in (0, 1):
                        found = difference(
                            (first, second), ratio, share, random, arguments
                        )[not paired]
                        print(
                            f"{first}, {second:2}   {ratio:5.2f}  {share:9}  "
                            f"{found[0]:8.1%}  {found[1]:5.2f}"
                        )
    print(
        "\nA difference of two rows by the deviation of others of 3 trials, if "
        "one or both\nhave one trial\n\n"
        "trials  others  ratio  pooled  coverage  width"
    )
    for own in (1, 3, 5):
        for others in (2, 4, 6):
            for ratio in RATIOS:
                counted, covered, width = by_others(
                    own, others, ratio, random, arguments.experiments // 20
                )
                print(
                    f"{own},  1  {others:6}  {ratio:5.2f}  {counted:6.1%}  "
                    f"{covered:8.1%}  {width:5.2f}"
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
    """Return the same for a difference, at common seeds and without them."""
    deviations = np.array([1, ratio])
    first, second = (
        random.normal(scale=scale, size=(arguments.experiments, n))
        for scale, n in zip(deviations, trials, strict=True)
    )
    known = share * float((deviations**2 / trials).sum())
    drawn = random.normal(scale=known**0.5, size=len(first))
    variances = [x.var(axis=1, ddof=1) / x.shape[1] for x in (first, second)]
    half = half_width(np.transpose(variances), np.array(trials) - 1, known)
    covered = np.abs(first.mean(axis=1) - second.mean(axis=1) + drawn) <= half
    common = min(trials)
    paired = first[:, :common] - second[:, :common]
    return (
        of_trials(
            paired, share * float((deviations**2).sum()) / common, random
        ),
        (covered.mean(), 2 * np.median(half)),
    )


def by_others(own, others, ratio, random, experiments):
    """Return the share of pooled deviations, their coverage and width.

    Half of the other rows, and the row of one trial, have the ratio.
    """
    found = []
    for _ in range(experiments):
        scales = np.resize([1, ratio], others)
        scores = random.normal(scale=scales[:, None], size=(others, 3))
        spread = pool_spreads(
            [Spread(float(v), 2, 0.0) for v in scores.var(axis=1, ddof=1)]
        )
        if spread is not None:
            first = random.normal(size=own)
            if own > 1:
                variances = [first.var(ddof=1) / own, spread.variance]
                half = half_width(variances, [own - 1, spread.degrees])
            else:
                half = half_width(2 * spread.variance, spread.degrees)
            value = first.mean() - random.normal(scale=ratio)
            found.append((abs(value) <= half, 2 * half))
    covered, widths = np.array(found, float).T
    return len(found) / experiments, covered.mean(), np.median(widths)


if __name__ == "__main__":
    main()
