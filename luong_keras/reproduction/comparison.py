"""What finished rows say of the paper's claims, by resampling."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from luong_keras.reproduction.measures import MEASURES, scores_of
from luong_keras.reproduction.plan import Plan
from luong_keras.reproduction.plan_files import Claim, Correlation, Table
from luong_keras.reproduction.record import Record

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
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float


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
    """

    claim: Claim | Correlation
    verdict: str
    value: Interval | None = None
    missing: tuple[str, ...] = ()
    trials: int = 0


class Resampling:
    """Scores of the same resampled test sentences, for all rows.

    Each sample draws as many sentences as there are, with replacement (Koehn,
    2004), the same for every row; where a row was tried with several seeds it
    draws as many of its trials too, so that an interval has both sources of
    chance in it. Rows that are the same trainings, as before and after unk
    replacement, draw the same trials, of those that both have.

    Args:
        rows: with the same test text.
        samples: how many.
    """

    def __init__(self, rows: Rows, samples: int = SAMPLES) -> None:
        self.rows = rows
        self.samples = samples
        self._drawn: dict[tuple, np.ndarray] = {}

    def score(self, row: str, of: str, over: str = "all") -> float:
        """A row's score of the text as it is, the mean of its trials."""
        return self._score(self.rows[row], of, over)

    def scores(self, row: str, of: str, over: str = "all") -> np.ndarray:
        """Its scores of all samples."""
        return self._scores(self.rows[row], of, over)

    def has(self, row: str, of: str) -> bool:
        """Whether a row has been tried and has this score."""
        columns = MEASURES[of].columns
        return bool(self.rows.get(row)) and all(
            column in record.sentences
            for record in self.rows[row]
            for column in columns
        )

    def difference(
        self, terms: Sequence[tuple[int, str]], of: str, over: str = "all"
    ) -> Interval:
        """A sum of scores with signs, and how sure it is."""
        trials = self.paired({row for _, row in terms})
        parts = [
            (one * other, trials[row], part)
            for one, row in terms
            for other, part in zip((1, -1), over.split(" - "), strict=False)
        ]
        value = sum(sign * self._score(x, of, part) for sign, x, part in parts)
        found = np.zeros(self.samples)
        for sign, records, part in parts:
            found += sign * self._scores(records, of, part)
        low, high = np.quantile(found, [_LEVEL / 2, 1 - _LEVEL / 2])
        return Interval(value, float(low), float(high))

    def paired(self, names: Iterable[str]) -> dict[str, tuple[Record, ...]]:
        """The trials of rows; of the same training, those that all have."""
        found = {name: tuple(self.rows[name]) for name in names}
        alike = defaultdict(list)
        for name, records in found.items():
            alike[records[0].trained].append(name)
        for same in alike.values():
            seeds = [{r.seeds for r in found[name]} for name in same]
            if common := set.intersection(*seeds):
                for name in same:
                    chosen = [r for r in found[name] if r.seeds in common]
                    found[name] = tuple(chosen)
        return found

    def _score(self, records: Sequence[Record], of: str, over: str) -> float:
        ones = np.ones((1, _sentences(records)))
        return float(np.mean(_trials(records, of, over, ones)))

    def _scores(
        self, records: Sequence[Record], of: str, over: str
    ) -> np.ndarray:
        key = tuple((r.row, r.seeds) for r in records), of, over
        if key not in self._drawn:
            self._drawn[key] = self._resampled(records, of, over)
        return self._drawn[key]

    def _resampled(
        self, records: Sequence[Record], of: str, over: str
    ) -> np.ndarray:
        count = _sentences(records)
        random = np.random.default_rng([_SEED, count])
        weights = random.multinomial(count, [1 / count] * count, self.samples)
        scores = _trials(records, of, over, weights)
        # Other trainings draw their trials by themselves.
        drawn_by = repr((records[0].trained, [r.seeds for r in records]))
        random = np.random.default_rng([_SEED, *drawn_by.encode()])
        trials = len(records)
        drawn = random.integers(trials, size=(self.samples, trials))
        found = scores[drawn, np.arange(self.samples)[:, None]].mean(axis=1)
        mean = scores.mean(axis=0)
        # The mean of n that are drawn of n varies by (n - 1) / n of what the
        # mean of n does.
        return mean + (found - mean) * (trials / max(trials - 1, 1)) ** 0.5


def _trials(
    records: Sequence[Record], of: str, over: str, weights: np.ndarray
) -> np.ndarray:
    """The scores of every trial, for rows of weights of the sentences."""
    if over == "long":
        lengths = np.array(records[0].sentences["source_lengths"])
        weights = weights * is_long(lengths)
    return np.array(
        [scores_of(of, dict(r.sentences), weights) for r in records]
    )


def _sentences(records: Sequence[Record]) -> int:
    return len(records[0].sentences["source_lengths"])


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
    value = resampling.difference(claim.terms, claim.of, claim.over)
    trials = min(map(len, resampling.paired(names).values()))
    return Verdict(claim, _above_zero(value), value, trials=trials)


def _above_zero(value: Interval) -> str:
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
