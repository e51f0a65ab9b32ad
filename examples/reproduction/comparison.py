"""Verdicts of finished rows on the paper's claims."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reproduction.intervals import equal_variances_p, half_width
from reproduction.measures import MEASURES, scores_of
from reproduction.plan import Plan
from reproduction.plan_files import Claim, Correlation, Table
from reproduction.record import Record

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
NOT_DECIDED = "not decided"
NOT_TRIED = "not tried"
SAMPLES = 1000
_SEED = 1
_LEVEL = 0.05
# Two scores that have half of their variance in common go together.
_WELL_CORRELATED = 0.5

#: All trials of a row, by its name.
Rows = Mapping[str, Sequence[Record]]


class Interval(NamedTuple):
    """A number with its 95 % confidence interval.

    Attributes:
        value: the number.
        low: the lower bound; None where nothing says how trials differ.
        high: the upper bound, likewise.
        basis: source of the variance, where it is pooled.
    """

    value: float
    low: float | None = None
    high: float | None = None
    basis: str = ""


class Spread(NamedTuple):
    """Variance between the trials of a row, or of a difference.

    Attributes:
        variance: between trials, on the same test sentences.
        degrees: of freedom of the variance.
        sentences: the part of it that other sentences would change.
    """

    variance: float
    degrees: int
    sentences: float


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        claim: of the plan.
        verdict: one of the four.
        value: the sum that should be above zero, or the correlation.
        missing: the rows that would be needed.
        trials: how often the row that was trained least was trained, 0 where
            chance in training is not asked for.
        why: there is no value, though all rows are there.
    """

    claim: Claim | Correlation
    verdict: str
    value: Interval | None = None
    missing: tuple[str, ...] = ()
    trials: int = 0
    why: str = ""


class Resampling:
    """Scores of rows, and intervals of their sums.

    Two sources of chance are in an interval: the choice of the test sentences,
    by resampling them with replacement (Koehn, 2004), the same ones for every
    row; and the seeds, by the t of as many trials as there are. Rows are
    compared seed by seed, so that the trials of a difference are differences
    and need no equal variances of the rows. A row of one trial is judged by
    the deviation of the trials of the other rows, pooled, where these do not
    differ (Bartlett's test); there is no interval otherwise.

    Args:
        rows: those of a page.
        samples: how many times the sentences are resampled.
    """

    def __init__(self, rows: Rows, samples: int = SAMPLES) -> None:
        self.rows = rows
        self.samples = samples
        self._values: dict[tuple, np.ndarray] = {}
        self._pools: dict[tuple[str, str], tuple[Spread, str] | None] = {}

    def score(self, row: str, of: str, over: str = "all") -> float:
        """A row's score of the text as it is, the mean of its trials."""
        return float(self._of(self.rows[row], of, over)[:, 0].mean())

    def scores(self, row: str, of: str, over: str = "all") -> np.ndarray:
        """Its scores of all resampled texts, likewise."""
        return self._of(self.rows[row], of, over)[:, 1:].mean(axis=0)

    def has(self, row: str, of: str) -> bool:
        """Whether a row has been tried and has this score."""
        columns = MEASURES[of].columns
        return bool(self.rows.get(row)) and all(
            column in record.sentences
            for record in self.rows[row]
            for column in columns
        )

    def comparable(self, names: Iterable[str]) -> bool:
        """Whether rows were scored by the same references."""
        records = [r for name in names for r in self.rows[name]]
        return len({record.references for record in records}) == 1

    def difference(
        self, terms: Sequence[tuple[int, str]], of: str, over: str = "all"
    ) -> Interval:
        """A sum of scores with signs, and how sure it is.

        Raises:
            ValueError: where the rows have not the same references.
        """
        if not self.comparable(row for _, row in terms):
            raise ValueError(
                "Expected: rows with the same references, of the same test "
                "text, case and tokenisation. Received: "
                f"{', '.join(row for _, row in terms)}."
            )
        trials = self.paired({row for _, row in terms})
        fewest = min(map(len, trials.values()))
        if fewest == 1:
            return self._by_pooled(terms, trials, of, over)
        found = np.zeros((fewest, 1 + self.samples))
        for sign, row in terms:
            found += sign * self._of(trials[row][:fewest], of, over)
        spread = spread_of(found)
        return _interval(found.mean(axis=0), spread, 1 / fewest, "")

    def paired(self, names: Iterable[str]) -> dict[str, list[Record]]:
        """The trials of rows, in the order of their seeds.

        Of the same training only the seeds that all have; of others too,
        where these are two or more.
        """
        found = {
            name: sorted(self.rows[name], key=lambda record: record.seeds)
            for name in names
        }
        alike = defaultdict(list)
        for name, records in found.items():
            alike[records[0].trained].append(name)
        for same in alike.values():
            _keep_common(found, same, 1)
        _keep_common(found, list(found), 2)
        return found

    def _by_pooled(
        self,
        terms: Sequence[tuple[int, str]],
        trials: Mapping[str, Sequence[Record]],
        of: str,
        over: str,
    ) -> Interval:
        """Interval of a sum in which some row has one trial."""
        parts = [(x, self._of(trials[row], of, over)) for x, row in terms]
        means = sum(sign * values.mean(axis=0) for sign, values in parts)
        # Two scores of one training differ by another variance.
        alone = {trials[row][0].trained for _, row in terms}
        pool = self._pooled(of, over)
        if pool is None or len(alone) < len(terms):
            return Interval(float(means[0]))
        share = sum(1 / len(values) for _, values in parts)
        return _interval(means, pool[0], share, pool[1])

    def _pooled(self, of: str, over: str) -> tuple[Spread, str] | None:
        """The spread of all rows with several trials, if it is one."""
        if (of, over) not in self._pools:
            trained = {
                records[0].trained: name
                for name, records in list(self.rows.items())[::-1]
                if len(records) > 1 and self.has(name, of)
            }
            names = list(trained.values())[::-1]
            spreads = [
                spread_of(self._of(self.rows[name], of, over)) for name in names
            ]
            told = f"pooled deviation of {', '.join(names)}"
            pool = pooled(spreads)
            self._pools[of, over] = None if pool is None else (pool, told)
        return self._pools[of, over]

    def _of(self, records: Sequence[Record], of: str, over: str) -> np.ndarray:
        """Scores (trials, 1 + samples): of the text, and of the resampled."""
        return np.array([self._scores(record, of, over) for record in records])

    def _scores(self, record: Record, of: str, over: str) -> np.ndarray:
        key = record.row, record.seeds, of, over
        if key not in self._values:
            count = len(record.sentences["source_lengths"])
            random = np.random.default_rng([_SEED, count])
            drawn = random.multinomial(count, [1 / count] * count, self.samples)
            weights = np.concatenate([np.ones((1, count)), drawn])
            first, *others = (
                _of_part(record, of, part, weights)
                for part in over.split(" - ")
            )
            self._values[key] = first - sum(others)
        return self._values[key]


def _keep_common(
    found: dict[str, list[Record]], names: Sequence[str], least: int
) -> None:
    """Keep the trials of the common seeds, if there are enough."""
    common = set.intersection(*({r.seeds for r in found[n]} for n in names))
    if len(common) >= least:
        for name in names:
            found[name] = [r for r in found[name] if r.seeds in common]


def spread_of(scores: np.ndarray) -> Spread:
    """The spread of trials.

    Args:
        scores: (trials, 1 + samples), of the text and of resampled ones, with
            two trials or more.
    """
    trials = len(scores)
    resampled = np.cov(scores[:, 1:])
    own = np.trace(resampled) / trials
    shared = (resampled.sum() - np.trace(resampled)) / (trials * (trials - 1))
    variance = float(scores[:, 0].var(ddof=1))
    return Spread(variance, trials - 1, float(own - shared))


def pooled(spreads: Sequence[Spread]) -> Spread | None:
    """One spread of several rows; None of fewer than two, or unequal ones."""
    degrees = [spread.degrees for spread in spreads]
    variances = [spread.variance for spread in spreads]
    if len(spreads) < 2 or equal_variances_p(variances, degrees) < _LEVEL:
        return None
    sentences = [spread.sentences for spread in spreads]
    return Spread(
        float(np.average(variances, weights=degrees)),
        sum(degrees),
        float(np.average(sentences, weights=degrees)),
    )


def _interval(
    means: np.ndarray, spread: Spread, share: float, basis: str
) -> Interval:
    """An interval around a mean of trials.

    Args:
        means: (1 + samples,) of the text and of resampled ones.
        spread: of the trials.
        share: the variance of the mean, where that of a trial is 1.
        basis: of the spread.
    """
    # The sentences' part of the variance between trials counts once.
    known = max(means[1:].var() - share * spread.sentences, 0)
    half = float(half_width(share * spread.variance, spread.degrees, known))
    value = float(means[0])
    return Interval(value, value - half, value + half, basis)


def _of_part(
    record: Record, of: str, over: str, weights: np.ndarray
) -> np.ndarray:
    """The scores of a trial, for rows of weights of the sentences."""
    if over == "long":
        lengths = np.array(record.sentences["source_lengths"])
        weights = weights * is_long(lengths)
    return scores_of(of, dict(record.sentences), weights)


def is_long(lengths: np.ndarray) -> np.ndarray:
    """Which sentences are the third with the longest sources.

    Example:
        >>> is_long(np.array([3, 9, 5])).tolist()
        [False, True, False]
    """
    order = np.argsort(lengths, kind="stable")
    found = np.zeros(len(lengths), bool)
    found[order[len(lengths) - len(lengths) // 3 :]] = True
    return found


def verdicts(plan: Plan, resampling: Resampling) -> list[Verdict]:
    """All claims of a plan, as far as its rows decide them."""
    found = [_claim(claim, resampling) for claim in plan.claims]
    found += [
        _correlation(told, plan.tables[told.table], resampling)
        for told in plan.correlations
    ]
    return found


def _claim(claim: Claim, resampling: Resampling) -> Verdict:
    names = [row for _, row in claim.terms]
    missing = [n for n in names if not resampling.has(n, claim.of)]
    if missing:
        return Verdict(claim, NOT_TRIED, missing=tuple(missing))
    if not resampling.comparable(names):
        return Verdict(claim, NOT_DECIDED, why="rows of other references")
    value = resampling.difference(claim.terms, claim.of, claim.over)
    trials = min(map(len, resampling.paired(names).values()))
    return Verdict(claim, _above_zero(value), value, trials=trials)


def _above_zero(value: Interval) -> str:
    if value.low is None or value.high is None:
        return NOT_DECIDED
    if value.low > 0:
        return HOLDS
    return DOES_NOT_HOLD if value.high < 0 else NOT_DECIDED


def _correlation(
    told: Correlation, table: Table, resampling: Resampling
) -> Verdict:
    rows = [line.row for line in table.lines]
    names = [n for n in rows if all(resampling.has(n, of) for of in told.of)]
    absent = tuple(name for name in rows if name not in names)
    # Each training once: its other rows are nearly the same two scores.
    trained = {resampling.rows[n][0].trained: n for n in reversed(names)}
    names = list(reversed(trained.values()))
    if len(names) < 4:
        return Verdict(told, NOT_TRIED, missing=absent)
    xs, ys = (
        np.array([resampling.score(name, of) for name in names])
        for of in told.of
    )
    value = correlation(xs, ys)
    chance = permutation_p(xs, ys)
    if told.sign == 0:
        strong = value**2 >= _WELL_CORRELATED
        if strong and chance < _LEVEL:
            verdict = DOES_NOT_HOLD
        else:
            verdict = NOT_DECIDED if strong or chance < _LEVEL else HOLDS
    elif chance >= _LEVEL:
        verdict = NOT_DECIDED
    else:
        verdict = HOLDS if value * told.sign > 0 else DOES_NOT_HOLD
    return Verdict(told, verdict, Interval(value, value, value))


def correlation(xs: np.ndarray, ys: np.ndarray) -> float:
    """Pearson's r; 0 where one of the two does not vary."""
    if np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return 0.0
    return float(np.corrcoef(xs, ys)[0, 1])


def permutation_p(xs: np.ndarray, ys: np.ndarray, most: int = 5040) -> float:
    """How often a correlation as strong would come of pairing at random.

    All pairings where there are few, a sample of them otherwise.
    """
    value = abs(correlation(xs, ys))
    if len(ys) <= 7:
        pairings = [list(order) for order in itertools.permutations(ys)]
    else:
        random = np.random.default_rng(_SEED)
        pairings = [list(ys)]
        pairings += [list(random.permutation(ys)) for _ in range(most)]
    # Of floats that are the same but for rounding.
    strong = [
        abs(correlation(xs, np.array(p))) >= value - 1e-12 for p in pairings
    ]
    return sum(strong) / len(strong)
