"""Verdicts: what is above zero, and what chance alone could be."""

import dataclasses

import numpy as np
import pytest

from reproduction.comparison import (
    Resampling,
    correlation,
    half_width,
    is_long,
    verdicts,
)
from tests.reproduction.made_up_records import builtin_plan, record


def rows(**shares):
    return {
        name.replace("_", "-"): [
            record(name.replace("_", "-"), seed, share)
            for seed, share in enumerate(
                given if isinstance(given, list) else [given], start=1
            )
        ]
        for name, given in shares.items()
    }


def verdict_of(resampling, start):
    plan = builtin_plan()
    resampling.samples = min(resampling.samples, 200)
    (found,) = [
        v for v in verdicts(plan, resampling) if v.claim.claim.startswith(start)
    ]
    return found


def scores(resampling, row, of):
    """The mean scores of a row in all resampled texts."""
    found = resampling._of(resampling.rows[row], of, "all")
    return found[:, 1:].mean(axis=0)


@pytest.mark.parametrize(
    ("base", "reverse", "expected"),
    [(0.5, 0.7, "holds"), (0.7, 0.5, "does not hold"), (0.5, 0.5, "not decid")],
)
def test_a_claim_holds_where_the_interval_is_above_zero(
    base, reverse, expected
):
    found = rows(base=[base] * 3, reverse=[reverse] * 3)
    found = verdict_of(Resampling(found), "Revers")
    assert found.verdict.startswith(expected)
    assert found.value.low <= found.value.value <= found.value.high


def test_rows_that_were_not_run_are_named():
    found = verdict_of(Resampling(rows(base=0.5)), "Reversing")
    assert (found.verdict, found.missing) == ("not tried", ("reverse",))


def test_trials_that_disagree_decide_nothing():
    found = rows(base=[0.4, 0.7, 0.5], reverse=[0.5, 0.65, 0.9])
    assert verdict_of(Resampling(found), "Revers").verdict == "not decided"
    # As far apart on average, seed by seed.
    found = rows(base=[0.4, 0.7, 0.5], reverse=[0.55, 0.85, 0.65])
    assert verdict_of(Resampling(found), "Revers").verdict == "holds"


def test_one_trial_decides_nothing():
    found = rows(base=0.1, reverse=0.9)
    told = verdict_of(Resampling(found), "Revers")
    assert told.verdict == "not decided" and told.trials == 1
    assert told.value.value > 70 and told.value[1:] == (None, None, "")
    # Nor does the deviation of one other row, which cannot be tested.
    found |= rows(dropout=[0.5, 0.52, 0.54])
    assert verdict_of(Resampling(found), "Revers").verdict == "not decided"


def test_one_trial_is_judged_by_the_deviation_of_the_other_rows():
    found = rows(
        base=0.1, reverse=0.9, dropout=[0.5, 0.52, 0.48], feed=[0.7, 0.71, 0.67]
    )
    told = verdict_of(Resampling(found), "Revers")
    assert told.verdict == "holds"
    assert told.value.basis == "pooled deviation of dropout, feed"
    # Of rows whose deviations are others there is none.
    unequal = found | rows(feed=[0.1, 0.5, 0.9, 0.2], dropout=[0.5] * 4)
    told = verdict_of(Resampling(unequal), "Revers")
    assert told.verdict == "not decided" and told.value.low is None
    # Trials of one training differ by other amounts than rows do.
    found["base"] = with_trials("base", 0.1)
    twins = better(found["base"], "reverse")
    told = verdict_of(Resampling(found | {"reverse": twins}), "Revers")
    assert told.verdict == "not decided" and told.value.low is None


def test_a_pooled_interval_is_students():
    # Trials of the same sentences: what differs is all by the seed.
    def trials(row, *costs):
        return [record(row, 1, likelihood=x) for x in costs]

    def numbered(records):
        return [
            dataclasses.replace(one, seeds=(n,))
            for n, one in enumerate(records, start=1)
        ]

    found = {
        row: numbered(trials(row, *costs))
        for row, costs in {
            "base": [1.5],
            "reverse": [1.0],
            "dropout": [1.0, 1.1, 1.3],
            "feed": [1.0, 1.2, 1.1],
        }.items()
    }
    value = Resampling(found, 50).difference(
        [(1, "base"), (-1, "reverse")], "perplexity"
    )
    spread = np.mean(
        [np.exp(x).var(ddof=1) for x in ([1, 1.1, 1.3], [1, 1.2, 1.1])]
    )
    assert value.value == pytest.approx(np.exp(1.5) - np.e)
    # t of 4 degrees of freedom, of two means of one trial.
    half = 2.776 * (2 * spread) ** 0.5
    assert value.high - value.value == pytest.approx(half, rel=1e-3)


def test_a_gain_is_a_difference_of_differences():
    found = rows(
        feed=[0.5] * 3,
        feed_unk=[0.52] * 3,
        global_dot=[0.5] * 3,
        global_dot_unk=[0.7] * 3,
    )
    told = verdict_of(Resampling(found), "Location-based")
    assert told.verdict == "holds"
    parts = [
        Resampling(found).score(name, "bleu")
        for name in ("global-dot-unk", "global-dot", "feed-unk", "feed")
    ]
    assert told.value.value == pytest.approx(
        parts[0] - parts[1] - parts[2] + parts[3]
    )


def test_errors_count_with_the_sign_that_the_claim_gives():
    found = {
        name: [record(name, seed, aer=errors) for seed in (1, 2)]
        for name, errors in (("feed", 0.4), ("local-p", 0.3))
    }
    start = "Local attention aligns better than global (location) does: local-"
    assert verdict_of(Resampling(found), start + "p").verdict == "holds"
    assert verdict_of(Resampling(found), start + "m").verdict == "not tried"
    value = Resampling(found).difference([(1, "feed"), (-1, "local-p")], "aer")
    assert value.value == pytest.approx(0.1)


def test_rows_are_compared_on_the_same_sentences():
    # What one row has right, the other has too: no sample tells them apart.
    one = record("base")
    ones = [one, dataclasses.replace(one, seeds=(2,))]
    twins = [dataclasses.replace(one, row="reverse") for one in ones]
    found = Resampling({"base": ones, "reverse": twins}, 50)
    assert scores(found, "base", "bleu").std() > 0
    value = found.difference([(1, "reverse"), (-1, "base")], "bleu")
    assert value == (0, 0, 0, "")


def test_long_sentences_are_scored_by_themselves():
    resampling = Resampling({"base": [record("base")]})
    lengths = np.array(record("base").sentences["source_lengths"])
    assert is_long(lengths).sum() == len(lengths) // 3
    assert lengths[is_long(lengths)].min() >= lengths[~is_long(lengths)].max()
    tokens = np.array(record("base").sentences["tokens"])[is_long(lengths)]
    mean = resampling.score("base", "perplexity", "long")
    assert mean == pytest.approx(np.exp((2 * tokens).sum() / tokens.sum()))


def test_intervals_are_those_of_the_normal_law():
    # The mean of 60 numbers: ± 1.96 deviations of the mean.
    made = record("base")
    made.sentences["negative_log_likelihood"] = np.random.default_rng(3).normal(
        2, 0.5, len(made.sentences["tokens"])
    )
    made.sentences["tokens"] = [1] * len(made.sentences["tokens"])
    found = scores(Resampling({"base": [made]}, 4000), "base", "perplexity")
    spread = np.log(found).std()
    values = made.sentences["negative_log_likelihood"]
    assert spread == pytest.approx(values.std() / 60**0.5, rel=0.05)


@pytest.mark.parametrize(
    ("slope", "noise", "told"),
    [(-1, 0.0, "holds"), (1, 0.0, "does not hold"), (0, 1.0, "not decided")],
)
def test_a_correlation(slope, noise, told):
    names = ("base", "reverse", "dropout", "location", "feed", "local-p")
    random = np.random.default_rng(5)
    found = {
        name: [
            record(
                name,
                share=0.3 + 0.1 * place,
                likelihood=2 + slope * 0.2 * place + noise * random.normal(),
            )
        ]
        for place, name in enumerate(names)
    }
    verdict = verdict_of(Resampling(found), "Progress in perplexity").verdict
    assert verdict == told


def test_a_correlation_of_three_rows_is_none():
    found = {name: [record(name)] for name in ("base", "reverse", "dropout")}
    told = verdict_of(Resampling(found), "Progress in perplexity")
    assert told.verdict == "not tried" and "feed" in told.missing


def test_pairings_are_counted():
    xs = np.array([1.0, 2.0, 3.0])
    # Of six pairings the rising and the falling one are as strong.
    assert correlation(xs, 2 * xs) == pytest.approx((1, 2 / 6))
    assert correlation(np.arange(9.0), -np.arange(9.0))[1] < 0.01
    assert correlation(xs, np.ones(3)) == (0, 1)


def with_trials(row, *shares, seeds=None):
    """A row that was trained with several seeds."""
    seeds = seeds or range(1, len(shares) + 1)
    return [record(row, n, x) for n, x in zip(seeds, shares, strict=True)]


def better(records, row):
    """The same trainings searched otherwise, all a little better."""
    found = []
    for one in records:
        sentences = dict(one.sentences)
        pairs = zip(sentences["matches_1"], sentences["length"], strict=True)
        sentences["matches_1"] = [min(n + 1, length) for n, length in pairs]
        settings = dict(one.settings) | {"decoding.replace_unknown": True}
        found.append(
            dataclasses.replace(
                one, row=row, sentences=sentences, settings=settings
            )
        )
    return found


def test_rows_of_the_same_trainings_are_compared_seed_by_seed():
    plain = with_trials("feed", 0.2, 0.5, 0.8)
    found = {"feed": plain, "feed-unk": better(plain, "feed-unk")}
    terms = [(1, "feed-unk"), (-1, "feed")]
    value = Resampling(found, 200).difference(terms, "bleu")
    assert 0 < value.low <= value.value <= value.high < 5
    # The other row has one of the three seeds: it is compared with itself.
    found["feed-unk"] = found["feed-unk"][:1]
    one = {name: records[:1] for name, records in found.items()}
    value = Resampling(found, 200).difference(terms, "bleu")
    assert value == Resampling(one, 200).difference(terms, "bleu")
    # Other seeds alone have nothing to do with each other.
    found["feed"] = plain[1:]
    value = Resampling(found, 200).difference(terms, "bleu")
    assert value.value < -30


def test_the_chance_of_few_seeds_is_not_made_small():
    # Two trials that differ by d: their mean has a deviation of d / 2, and
    # Student's t of one degree of freedom is 12.71.
    trials = [
        record("base", 1, likelihood=1.0),
        record("base", 2, likelihood=2),
    ]
    value = Resampling({"base": trials}).difference([(1, "base")], "perplexity")
    half = 12.706 * (np.exp(2) - np.e) / 2
    assert value.high - value.value == pytest.approx(half, rel=1e-4)
    assert value.value - value.low == pytest.approx(half, rel=1e-4)


def test_sentences_count_once():
    # The trials differ by their sentences alone: other sentences say as much.
    random = np.random.default_rng(4)
    trials = []
    for seed in range(1, 41):
        made = record("base", seed)
        count = len(made.sentences["tokens"])
        made.sentences["tokens"] = [1] * count
        costs = random.normal(1, 0.1, count)
        made.sentences["negative_log_likelihood"] = costs.tolist()
        trials.append(made)
    value = Resampling({"base": trials}).difference([(1, "base")], "perplexity")
    half = 1.96 * np.e * 0.1 / (40 * count) ** 0.5
    assert value.high - value.value == pytest.approx(half, rel=0.15)


def test_rows_are_compared_seed_by_seed():
    # What a seed does to all rows is in no difference.
    found = rows(base=[0.3, 0.5, 0.7], reverse=[0.4, 0.6, 0.8])
    terms = [(1, "reverse"), (-1, "base")]
    value = Resampling(found).difference(terms, "bleu")
    assert value.low > 0 and value.high < 20
    # In whatever order they are read, and whatever more one of them has.
    turned = found | {"base": found["base"][::-1]}
    assert Resampling(turned).difference(terms, "bleu") == value
    found["base"].append(record("base", 0, 0.1))
    assert Resampling(found).difference(terms, "bleu") == value


def test_a_verdict_says_how_many_seeds_it_rests_on():
    found = rows(base=[0.5, 0.5], reverse=0.7)
    assert verdict_of(Resampling(found), "Revers").trials == 1
    found = rows(base=[0.5, 0.5], reverse=[0.7, 0.7, 0.7])
    assert verdict_of(Resampling(found), "Revers").trials == 2


def other_test(one, row):
    """The same training, scored on a test text of another name."""
    settings = dict(one.settings) | {"data.test_set": "wmt15"}
    return dataclasses.replace(one, row=row, settings=settings)


def test_the_test_text_makes_no_other_training():
    found = rows(dropout=[0.5, 0.52, 0.48], feed=[0.7, 0.71, 0.67], base=0.3)
    twin = other_test(found["base"][0], "reverse")
    terms = [(1, "reverse"), (-1, "base")]
    # One training twice: no deviation of rows is that of its scores.
    value = Resampling(found | {"reverse": [twin]}).difference(terms, "bleu")
    assert (value.low, value.high) == (None, None)
    # Of the seeds that one of the two has, none are in the difference.
    found["base"].append(record("base", 2, 0.9))
    value = Resampling(found | {"reverse": [twin]}).difference(terms, "bleu")
    assert value.value == 0
    names = ("base", "reverse", "dropout")
    found = {name: [record(name)] for name in names}
    twin = other_test(record("dropout"), "local-p")
    told = verdict_of(Resampling(found | {"local-p": [twin]}), "Progress")
    assert told.verdict == "not tried"


def test_rows_of_other_references_have_no_difference():
    found = rows(base=[0.5] * 3, reverse=[0.6] * 3)
    for one in found["reverse"]:
        one.settings["data.lowercase"] = True
    with pytest.raises(ValueError, match="rows with the same references"):
        Resampling(found).difference([(1, "reverse"), (-1, "base")], "bleu")
    assert verdict_of(Resampling(found), "Revers").verdict == "not decided"


def test_a_training_counts_once_in_a_correlation():
    names = ("base", "reverse", "dropout")
    found = {name: [record(name)] for name in names}
    twin = dataclasses.replace(record("dropout"), row="local-p-unk")
    told = verdict_of(Resampling(found | {"local-p-unk": [twin]}), "Progress")
    assert told.verdict == "not tried" and "local-p-unk" not in told.missing


TRIALS = (2, 3, 5, 10)


# Of a printed table of Student's t.
TABLE = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 12: 2.179, 120: 1.980}


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles_are_those_of_a_table(degrees):
    # Of a mean with the variance 1.
    assert half_width(1.0, degrees) == pytest.approx(TABLE[degrees], abs=6e-4)
    # Where the sentences alone vary, the normal one.
    assert half_width(0.0, degrees, 1.0) == pytest.approx(1.960, abs=6e-4)


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
    assert np.median(half) < 1.1 * TABLE[trials - 1] * np.sqrt(
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
    ("trials", "deviations"),
    [
        pytest.param((3, 3), (0.02, 0.02), marks=pytest.mark.slow),
        ((5, 3), (0.005, 0.015)),
    ],
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
