"""Verdicts on claims, with confidence intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from reproduction.plan import Claim, Correlation, Plan, Table
from reproduction.record import Record
from reproduction.scores import MEASURES, scores_of

HOLDS, DOES_NOT_HOLD = "holds", "does not hold"
NOT_DECIDED, NOT_TRIED = "not decided", "not tried"
SAMPLES = 1000
_SEED = 1
_LEVEL = 0.05
# Exponent of the trials' share of the variance, which weights the quantiles.
# With 1, as in Cochran and Cox (1950), coverage is up to 98 % at two trials;
# `benchmarks/interval_coverage.py` prints the coverage with this exponent.
_SHARE_POWER = 1.3
# Two scores that share half of their variance are well correlated.
_WELL_CORRELATED = 0.5

#: All trials of each row, by its name.
Rows = Mapping[str, Sequence[Record]]
Terms = Sequence[tuple[int, str]]


class Interval(NamedTuple):
    """A number with its 95 % confidence interval, if the spread is known."""

    value: float
    low: float | None = None
    high: float | None = None
    basis: str = ""  # source of a pooled spread


class Spread(NamedTuple):
    """Variance between trials that are scored on the same sentences."""

    variance: float
    degrees: int
    sentences: float  # part due to the choice of sentences


class Verdict(NamedTuple):
    """A verdict, the rows that it needs, and the least number of trials."""

    claim: Claim | Correlation
    verdict: str
    value: Interval | None = None
    missing: tuple[str, ...] = ()
    trials: int = 0
    why: str = ""  # reason for no value although no row is missing


def half_width(
    variance: ArrayLike, degrees: ArrayLike, sentence_variance: ArrayLike = 0.0
) -> np.ndarray:
    """Return half of the 95 % confidence interval of a mean.

    The quantile lies between Student's quantile, which is right if only the
    trials vary, and the normal one, as in the test of Cochran and Cox (1950).

    `variance` is the mean's variance, estimated from few trials with these
    `degrees` of freedom, or the variances of independent parts (last axis) with
    the degrees of each; `sentence_variance` is that due to the many sentences.
    """
    variance = np.asarray(variance, float)
    tiny = np.finfo(float).tiny
    normal = stats.norm.ppf(1 - _LEVEL / 2)
    student = stats.t.ppf(1 - _LEVEL / 2, degrees)
    if np.ndim(degrees):
        weighted, variance = variance @ student, variance.sum(axis=-1)
        student = weighted / np.maximum(variance, tiny)
    total = variance + np.asarray(sentence_variance, float)
    share = variance / np.maximum(total, tiny)
    quantile = normal + (student - normal) * share**_SHARE_POWER
    return quantile * np.sqrt(total)


def spread_of(scores: np.ndarray) -> Spread:
    """Return the spread of (trials, 1 + samples) scores of text and samples."""
    trials = len(scores)
    resampled = np.cov(scores[:, 1:])
    own_variance = np.trace(resampled) / trials
    covariance = (resampled.sum() - np.trace(resampled)) / (
        trials * (trials - 1)
    )
    variance = float(scores[:, 0].var(ddof=1))
    return Spread(variance, trials - 1, float(own_variance - covariance))


def pool_spreads(spreads: Sequence[Spread]) -> Spread | None:
    """Pool spreads; return None for fewer than two or unequal variances."""
    if len(spreads) < 2 or equal_variances_p(spreads) < _LEVEL:
        return None
    degrees = [spread.degrees for spread in spreads]
    variance, _, sentences = np.average(spreads, axis=0, weights=degrees)
    return Spread(float(variance), sum(degrees), float(sentences))


def equal_variances_p(
    spreads: Sequence[Spread], samples: int = 10_000
) -> float:
    """Return the p value of Bartlett's test of equal variances.

    The statistic's distribution is simulated, because the usual approximation,
    as in SciPy, assumes many trials.
    """
    degrees = np.array([spread.degrees for spread in spreads], float)

    def statistic(variances: np.ndarray) -> np.ndarray:
        variances = np.maximum(variances, np.finfo(float).tiny)
        mean = variances @ degrees / degrees.sum()
        return degrees.sum() * np.log(mean) - np.log(variances) @ degrees

    random = np.random.default_rng(_SEED)
    drawn = random.chisquare(degrees, (samples, len(degrees))) / degrees
    observed = statistic(np.array([spread.variance for spread in spreads]))
    return float(np.mean(statistic(drawn) >= observed))


class Resampling:
    """Signed sums of scores, and their intervals.

    An interval covers two sources of variance: the choice of the test
    sentences, by a paired bootstrap (Koehn, 2004), and the seeds, by Student's
    t. Rows are compared seed by seed if they have two common seeds, else with
    the variance of each. For a row with one trial, the variances of other rows
    are pooled, unless Bartlett's test finds them unequal.
    """

    def __init__(self, rows: Rows, samples: int = SAMPLES) -> None:
        self.rows = rows
        self.samples = samples
        self._values: dict[tuple, np.ndarray] = {}

    def score(self, row: str, of: str, over: str = "all") -> float:
        """Return a row's score of the test text, the mean of its trials."""
        return float(self._trial_scores(self.rows[row], of, over)[:, 0].mean())

    def has(self, row: str, of: str) -> bool:
        """Test whether a row has trials that all have this score."""
        columns = set(MEASURES[of].columns)
        records = self.rows.get(row, ())
        known = all(columns <= set(r.sentences) for r in records)
        return bool(records) and known

    def are_comparable(self, names: Iterable[str]) -> bool:
        """Test whether rows were scored with the same references."""
        keys = {r.reference_key for name in names for r in self.rows[name]}
        return len(keys) == 1

    def difference(self, terms: Terms, of: str, over: str = "all") -> Interval:
        """Return a signed sum of scores with its interval."""
        names = [row for _, row in terms]
        if not self.are_comparable(names):
            raise ValueError(
                "Expected: rows with the same references, of the same test "
                f"text, case and tokenisation. Received: {', '.join(names)}."
            )
        trials = self.pair_trials(names)
        seeds = {name: tuple(r.seeds for r in trials[name]) for name in names}
        paired = len(set(seeds.values())) == 1 < len(trials[names[0]])
        parts = defaultdict(list)  # independent of each other
        for sign, row in terms:
            key = paired or (trials[row][0].training_key, seeds[row])
            parts[key].append(sign * self._trial_scores(trials[row], of, over))
        sums = [np.sum(part, axis=0) for part in parts.values()]
        means = np.sum([part.mean(axis=0) for part in sums], axis=0)
        spreads = [(1 / len(x), spread_of(x)) for x in sums if len(x) > 1]
        single, basis = len(sums) - len(spreads), ""
        if single:
            pool, basis = self._pooled_spread(of, over, names)
            # It is wrong for two scores of one training run.
            twins = any(len(x[0]) == 1 < len(x) for x in parts.values())
            if pool is None or twins:
                return Interval(float(means[0]))
            spreads.append((single, pool))
        variances, degrees, known = np.transpose(
            [(x * s.variance, s.degrees, x * s.sentences) for x, s in spreads]
        )
        # Avoid counting the sentences' part of the variance twice.
        sentence_variance = max(means[1:].var() - known.sum(), 0)
        half = float(half_width(variances, degrees, sentence_variance))
        value = float(means[0])
        return Interval(value, value - half, value + half, basis)

    def pair_trials(self, names: Iterable[str]) -> dict[str, list[Record]]:
        """Return the trials of rows, in the order of their seeds.

        Rows of the same training runs keep only their common seeds. All rows
        do so if they have two or more common seeds.
        """
        seeds = {name: {r.seeds for r in self.rows[name]} for name in names}
        runs = defaultdict(list)
        for name in seeds:
            runs[self.rows[name][0].training_key].append(name)
        for least, group in (*((1, g) for g in runs.values()), (2, [*seeds])):
            common = set.intersection(*(seeds[name] for name in group))
            if len(common) >= least:
                seeds |= dict.fromkeys(group, common)
        return {
            name: sorted(
                (r for r in self.rows[name] if r.seeds in kept),
                key=lambda record: record.seeds,
            )
            for name, kept in seeds.items()
        }

    def _pooled_spread(
        self, of: str, over: str, terms: Sequence[str]
    ) -> tuple[Spread | None, str]:
        """Pool the spreads of other comparable rows, each run once."""
        runs = {self.rows[name][0].training_key: "" for name in terms}
        for name, records in self.rows.items():
            comparable = self.are_comparable((name, terms[0]))
            if comparable and len(records) > 1 and self.has(name, of):
                runs.setdefault(records[0].training_key, name)
        names = [name for name in runs.values() if name]
        scores = [self._trial_scores(self.rows[n], of, over) for n in names]
        basis = f"pooled deviation of {', '.join(names)}"
        return pool_spreads([*map(spread_of, scores)]), basis

    def _trial_scores(
        self, records: Sequence[Record], of: str, over: str
    ) -> np.ndarray:
        """Return (trials, 1 + samples) scores of the text and its samples."""
        return np.array([self._sample_scores(r, of, over) for r in records])

    def _sample_scores(self, record: Record, of: str, over: str) -> np.ndarray:
        key = record.row, record.seeds, of, over
        if key not in self._values:
            lengths = np.array(record.sentences["source_lengths"])
            count = len(lengths)
            # All rows share the same samples.
            random = np.random.default_rng([_SEED, count])
            counts = random.multinomial(
                count, [1 / count] * count, self.samples
            )
            weights = np.concatenate([np.ones((1, count)), counts])
            parts = {"all": weights, "long": weights * is_long(lengths)}
            first, *subtracted = (
                scores_of(of, record.sentences, parts[part])
                for part in over.split(" - ")
            )
            self._values[key] = first - sum(subtracted)
        return self._values[key]


def is_long(lengths: np.ndarray) -> np.ndarray:
    """Return a mask of the third of the sentences with longest sources."""
    order = np.argsort(lengths, kind="stable")
    mask = np.zeros(len(lengths), bool)
    mask[order[len(lengths) - len(lengths) // 3 :]] = True
    return mask


def verdicts(plan: Plan, resampling: Resampling) -> list[Verdict]:
    """Return the verdicts on all claims of a plan."""
    results = [_judge_claim(claim, resampling) for claim in plan.file.claims]
    for claim in plan.file.correlations:
        table = plan.file.tables[claim.table]
        results.append(_judge_correlation(claim, table, resampling))
    return results


def _judge_claim(claim: Claim, resampling: Resampling) -> Verdict:
    names = [row for _, row in claim.terms]
    missing = [n for n in names if not resampling.has(n, claim.of)]
    if missing:
        return Verdict(claim, NOT_TRIED, missing=tuple(missing))
    if not resampling.are_comparable(names):
        return Verdict(claim, NOT_DECIDED, why="rows of other references")
    value = resampling.difference(claim.terms, claim.of, claim.over)
    verdict = NOT_DECIDED
    if value.low is not None and value.high is not None:
        if value.low > 0:
            verdict = HOLDS
        elif value.high < 0:
            verdict = DOES_NOT_HOLD
    trials = min(map(len, resampling.pair_trials(names).values()))
    return Verdict(claim, verdict, value, trials=trials)


def _judge_correlation(
    claim: Correlation, table: Table, resampling: Resampling
) -> Verdict:
    rows = [line.row for line in table.lines]
    missing = [
        n for n in rows if not all(resampling.has(n, of) for of in claim.of)
    ]
    runs: dict[tuple, str] = {}  # each run once
    for name in () if missing else rows:
        runs.setdefault(resampling.rows[name][0].training_key, name)
    if len(runs) < 4:
        return Verdict(claim, NOT_TRIED, missing=tuple(missing))
    if not resampling.are_comparable(list(runs.values())):
        return Verdict(claim, NOT_DECIDED, why="rows of other references")
    xs, ys = (
        np.array([resampling.score(name, of) for name in runs.values()])
        for of in claim.of
    )
    value, chance, largest = correlation(xs, ys)
    significant = chance < _LEVEL
    verdict = NOT_DECIDED
    if claim.sign != 0 and significant:
        verdict = HOLDS if value * claim.sign > 0 else DOES_NOT_HOLD
    elif claim.sign == 0 and largest**2 < _WELL_CORRELATED:
        verdict = HOLDS
    elif claim.sign == 0 and significant and value**2 >= _WELL_CORRELATED:
        verdict = DOES_NOT_HOLD
    return Verdict(claim, verdict, Interval(value, value, value))


def correlation(xs: np.ndarray, ys: np.ndarray) -> tuple[float, float, float]:
    """Return Pearson's r, the share of random pairings as strong, and a bound.

    The bound is the largest absolute value in the 95 % interval of r, by
    Fisher's transformation.
    """
    if np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return 0.0, 1.0, 1.0
    pairings = stats.permutation_test(
        (xs,),
        lambda x: abs(np.corrcoef(x, ys)[0, 1]),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=5040,
        rng=np.random.default_rng(_SEED),
    )
    result = stats.pearsonr(xs, ys)
    largest = np.abs(result.confidence_interval(0.95)).max()
    return float(result.statistic), float(pairings.pvalue), float(largest)
