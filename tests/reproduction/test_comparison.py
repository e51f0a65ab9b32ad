import dataclasses

import numpy as np
import pytest

from reproduction.comparison import (
    Resampling,
    correlation,
    half_width,
    is_long,
    spread_of,
    verdicts,
)
from tests.reproduction.made_up_records import TABLE_1, builtin_plan, record

REVERSING = [(1, "reverse"), (-1, "base")]


def rows(**shares):
    """Make up records by the shares of right words of a row's trials."""
    found = {}
    for name, given in shares.items():
        row = name.replace("_", "-")
        trials = enumerate(given if isinstance(given, list) else [given], 1)
        found[row] = [record(row, seed, share) for seed, share in trials]
    return found


def with_settings(one, row=None, **settings):
    """Return the record with other settings, as one of another row."""
    settings = dict(one.settings) | settings
    return dataclasses.replace(one, row=row or one.row, settings=settings)


def verdict_of(found, start="Reversing"):
    each = verdicts(builtin_plan(), Resampling(found, 200))
    (verdict,) = [v for v in each if v.claim.claim.startswith(start)]
    return verdict


def completed(found, table="table1"):
    """Add the missing rows of a table, of the same training run as a row."""
    (one,) = next(iter(found.values()))
    lines = builtin_plan().file.tables[table].lines
    return {x.row: [dataclasses.replace(one, row=x.row)] for x in lines} | found


def scores(resampling, row, of):
    """Return the mean score of a row in each resampled text."""
    found = resampling._trial_scores(resampling.rows[row], of, "all")
    return found[:, 1:].mean(axis=0)


@pytest.mark.parametrize(
    ("base", "reverse", "expected"),
    [(0.5, 0.7, "holds"), (0.7, 0.5, "does not hold"), (0.5, 0.5, "not decid")],
)
def test_claims_hold_if_the_interval_is_above_zero(base, reverse, expected):
    found = rows(base=[base] * 3, reverse=[reverse] * 3)
    found = verdict_of(found)
    assert found.verdict.startswith(expected)
    assert found.value.low <= found.value.value <= found.value.high


def test_missing_rows_are_listed():
    found = verdict_of(rows(base=0.5))
    assert (found.verdict, found.missing) == ("not tried", ("reverse",))


def test_disagreeing_trials_do_not_decide():
    found = rows(base=[0.4, 0.7, 0.5], reverse=[0.5, 0.65, 0.9])
    assert verdict_of(found).verdict == "not decided"
    # The same mean difference, paired by seed.
    found = rows(base=[0.4, 0.7, 0.5], reverse=[0.55, 0.85, 0.65])
    assert verdict_of(found).verdict == "holds"


def test_a_single_trial_does_not_decide():
    found = rows(base=0.1, reverse=0.9)
    verdict = verdict_of(found)
    assert verdict.verdict == "not decided" and verdict.trials == 1
    assert verdict.value.value > 70 and verdict.value[1:] == (None, None, "")
    # The deviation of a single other row is not used: pooling needs two.
    found |= rows(dropout=[0.5, 0.52, 0.54])
    assert verdict_of(found).verdict == "not decided"


def test_single_trials_use_the_pooled_deviation_of_other_rows():
    found = rows(
        base=0.1, reverse=0.9, dropout=[0.5, 0.52, 0.48], feed=[0.7, 0.71, 0.67]
    )
    verdict = verdict_of(found)
    assert verdict.verdict == "holds"
    assert verdict.value.basis == "pooled deviation of dropout, feed"
    lowercase = {"data.lowercase": True}
    for changed in (
        # Unequal deviations are not pooled.
        rows(feed=[0.1, 0.5, 0.9, 0.2], dropout=[0.5] * 4),
        # Nor are those of rows with other references.
        {"feed": [with_settings(one, **lowercase) for one in found["feed"]]},
        # Rows of the same training runs do not use that of other rows.
        {"reverse": better(found["base"], "reverse")},
    ):
        verdict = verdict_of(found | changed)
        assert verdict.verdict == "not decided" and verdict.value.low is None


# The 97.5 % quantiles of Student's t, from a printed table.
TABLE = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262}


@pytest.mark.parametrize(
    ("base", "reverse"),
    [([1.5], [1.0]), ([1.5, 1.6, 1.9], [1.0]), ([1.5, 1.6, 1.9], [1.0, 1.2])],
)
def test_rows_without_common_seeds_have_their_own_variances(base, reverse):
    costs = {"base": base, "reverse": reverse}
    others = {"dropout": [1.0, 1.1, 1.3], "feed": [1.0, 1.2, 1.1]}
    # All trials have the same sentences: only the seed makes a difference.
    found = {
        row: [
            record(row, likelihood=cost, seeds=(seed,))
            for seed, cost in enumerate(x, start=3 if row == "reverse" else 1)
        ]
        for row, x in (costs | others).items()
    }
    terms = [(1, "base"), (-1, "reverse")]
    value = Resampling(found, 50).difference(terms, "perplexity")
    pooled = np.mean([np.exp(x).var(ddof=1) for x in others.values()])
    # A single trial has the pooled deviation, of 4 degrees of freedom.
    parts = [
        (np.exp(x).var(ddof=1) / len(x), TABLE[len(x) - 1])
        if x[1:]
        else (pooled, TABLE[4])
        for x in costs.values()
    ]
    variances, quantiles = np.transpose(parts)
    half = variances @ quantiles / variances.sum() ** 0.5
    means = [np.exp(x).mean() for x in costs.values()]
    assert value.value == pytest.approx(means[0] - means[1])
    assert value.high - value.value == pytest.approx(half, rel=1e-3)


def test_a_gain_is_a_difference_of_differences():
    found = rows(feed=[0.5] * 3, feed_unk=[0.52] * 3, global_dot=[0.5] * 3)
    found |= rows(global_dot_unk=[0.7] * 3)
    verdict = verdict_of(found, "Location-based")
    assert verdict.verdict == "holds"
    score = {row: Resampling(found).score(row, "bleu") for row in found}
    gains = [score[f"{row}-unk"] - score[row] for row in ("global-dot", "feed")]
    assert verdict.value.value == pytest.approx(gains[0] - gains[1])


def test_claims_give_the_sign_of_error_rates():
    found = {
        name: [record(name, seed, aer=errors) for seed in (1, 2)]
        for name, errors in (("feed", 0.4), ("local-p", 0.3))
    }
    start = "Local attention aligns better than global (location) does: local-"
    assert verdict_of(found, start + "p").verdict == "holds"
    assert verdict_of(found, start + "m").verdict == "not tried"
    value = Resampling(found).difference([(1, "feed"), (-1, "local-p")], "aer")
    assert value.value == pytest.approx(0.1)


def test_rows_are_compared_on_the_same_resampled_sentences():
    # Both rows have the same matches, so no sample distinguishes them.
    one = record("base")
    ones = [one, dataclasses.replace(one, seeds=(2,))]
    twins = [dataclasses.replace(one, row="reverse") for one in ones]
    found = Resampling({"base": ones, "reverse": twins}, 50)
    assert scores(found, "base", "bleu").std() > 0
    assert found.difference(REVERSING, "bleu") == (0, 0, 0, "")


def test_long_sentences_are_scored_separately():
    one = record("base")
    lengths = np.array(one.sentences["source_lengths"])
    is_in = is_long(lengths)
    assert is_in.sum() == len(lengths) // 3
    assert lengths[is_in].min() >= lengths[~is_in].max()
    tokens = np.array(one.sentences["tokens"])[is_in]
    mean = Resampling({"base": [one]}).score("base", "perplexity", "long")
    assert mean == pytest.approx(np.exp((2 * tokens).sum() / tokens.sum()))


def test_resampled_scores_have_the_normal_standard_error():
    # The standard error of the mean of 60 numbers.
    made = record("base")
    values = np.random.default_rng(3).normal(2, 0.5, 60)
    made.sentences["negative_log_likelihood"] = values
    made.sentences["tokens"] = [1] * 60
    found = scores(Resampling({"base": [made]}, 4000), "base", "perplexity")
    spread = np.log(found).std()
    assert spread == pytest.approx(values.std() / 60**0.5, rel=0.05)


@pytest.mark.parametrize(
    ("slope", "noise", "expected"),
    [(-1, 0.0, "holds"), (1, 0.0, "does not hold"), (0, 1.0, "not decided")],
)
def test_correlation_claims(slope, noise, expected):
    random = np.random.default_rng(5)
    found = {}
    for place, row in enumerate(TABLE_1):
        loss = 2 + slope * 0.2 * place + noise * random.normal()
        found[row] = [record(row, 1, 0.3 + 0.1 * place, loss)]
    assert verdict_of(completed(found), "Progress").verdict == expected
    verdict = verdict_of(found, "Progress")
    assert verdict.verdict == "not tried"
    assert verdict.missing == ("local-p-unk", "ensemble")


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([8, 5, 3, 2, 2, 3, 5, 8], "holds"),  # r = 0
        ([8, 5, 3, 2, 3, 5, 8, 9], "not decided"),  # r is about 0.3
        ([8, 7, 5, 5, 4, 3, 3, 1], "does not hold"),
        ([8, 5, 5, 8], "not decided"),  # r = 0 of four rows
    ],
)
def test_uncorrelated_scores_need_a_narrow_interval(errors, expected):
    names = ["feed", "global-dot", "global-general", "global-concat"]
    names += ["local-m-dot", "local-m-general", "local-p-dot", "local-p"]
    found = {
        name: [record(name, share=0.3 + 0.05 * place, aer=error / 10)]
        for place, (name, error) in enumerate(zip(names, errors, strict=False))
    }
    verdict = verdict_of(completed(found, "table4"), "Alignment errors")
    assert verdict.verdict == expected


def test_correlation_p_value_counts_permutations():
    xs = np.array([1.0, 2.0, 3.0])
    # Of six permutations, the rising and the falling one are as strong.
    assert correlation(xs, 2 * xs)[:2] == pytest.approx((1, 2 / 6))
    assert correlation(np.arange(9.0), -np.arange(9.0))[1] < 0.01
    assert correlation(xs, np.ones(3)) == (0, 1, 1)
    # Negative values are as strong as positive ones.
    xs, ys = np.array([0.4, 0.3, 0.2, 1, 2.5]), np.array([7, 13, 18, 7, 2])
    assert correlation(xs, ys)[1] == pytest.approx(8 / 120)


def better(records, row):
    """Return records of the same training runs with a better search."""
    found = []
    for one in records:
        one = with_settings(one, row, **{"decoding.replace_unknown": True})
        pairs = zip(
            one.sentences["matches_1"], one.sentences["length"], strict=True
        )
        more = {"matches_1": [min(n + 1, length) for n, length in pairs]}
        found.append(dataclasses.replace(one, sentences=one.sentences | more))
    return found


def test_rows_of_the_same_training_runs_are_paired_by_seed():
    found = rows(feed=[0.2, 0.5, 0.8])
    plain = found["feed"]
    found["feed-unk"] = better(plain, "feed-unk")
    terms = [(1, "feed-unk"), (-1, "feed")]
    value = Resampling(found, 200).difference(terms, "bleu")
    assert 0 < value.low <= value.value <= value.high < 5
    # Only the seed that both rows have is compared.
    found["feed-unk"] = found["feed-unk"][:1]
    one = {name: records[:1] for name, records in found.items()}
    value = Resampling(found, 200).difference(terms, "bleu")
    assert value == Resampling(one, 200).difference(terms, "bleu")
    # Without a common seed, the means of all trials are compared.
    found["feed"] = plain[1:]
    value = Resampling(found, 200).difference(terms, "bleu")
    assert value.value < -30


def test_intervals_of_two_seeds_use_students_t():
    # The mean of two trials that differ by d has the standard error d / 2, and
    # Student's t of one degree of freedom is 12.71.
    trials = [record("base", seed, likelihood=seed) for seed in (1, 2)]
    value = Resampling({"base": trials}).difference([(1, "base")], "perplexity")
    half = 12.706 * (np.exp(2) - np.e) / 2
    halves = value.high - value.value, value.value - value.low
    assert halves == pytest.approx((half, half), rel=1e-4)


def test_sentence_variance_is_counted_once():
    # Trials differ only by their sentences, whose resampling varies as much.
    random = np.random.default_rng(4)
    trials = [record("base", seed) for seed in range(1, 41)]
    for made in trials:
        costs = random.normal(1, 0.1, 60).tolist()
        made.sentences.update(tokens=[1] * 60, negative_log_likelihood=costs)
    value = Resampling({"base": trials}).difference([(1, "base")], "perplexity")
    half = 1.96 * np.e * 0.1 / (40 * 60) ** 0.5
    assert value.high - value.value == pytest.approx(half, rel=0.15)


def test_rows_are_paired_by_seed():
    # Effects of a seed on all rows cancel in differences.
    found = rows(base=[0.3, 0.5, 0.7], reverse=[0.4, 0.6, 0.8])
    value = Resampling(found).difference(REVERSING, "bleu")
    assert value.low > 0 and value.high < 20
    # Neither the order of the records nor an additional seed matters.
    turned = found | {"base": found["base"][::-1]}
    assert Resampling(turned).difference(REVERSING, "bleu") == value
    found["base"].append(record("base", 0, 0.1))
    assert Resampling(found).difference(REVERSING, "bleu") == value


def test_verdicts_report_the_least_number_of_trials():
    found = rows(base=[0.5, 0.5], reverse=0.7)
    assert verdict_of(found).trials == 1
    found = rows(base=[0.5, 0.5], reverse=[0.7, 0.7, 0.7])
    assert verdict_of(found).trials == 2


def test_another_test_text_is_the_same_training_run():
    found = rows(dropout=[0.5, 0.52, 0.48], feed=[0.7, 0.71, 0.67], base=0.3)
    other = {"data.test_set": "wmt15"}
    found["reverse"] = [with_settings(found["base"][0], "reverse", **other)]
    # The same training run twice: deviations of other rows do not apply.
    value = Resampling(found).difference(REVERSING, "bleu")
    assert (value.low, value.high) == (None, None)
    # Seeds of only one of the rows are left out of the difference.
    found["base"].append(record("base", 2, 0.9))
    assert Resampling(found).difference(REVERSING, "bleu").value == 0
    # It counts once in a correlation, with one name or several.
    found = rows(base=0.5, reverse=0.5, dropout=0.5)
    twin = with_settings(found["dropout"][0], "local-p", **other)
    for rows_of_runs in (found, found | {"local-p": [twin]}):
        verdict = verdict_of(completed(rows_of_runs), "Progress")
        assert verdict.verdict == "not tried" and not verdict.missing


def test_rows_with_different_references_are_not_compared():
    found = rows(base=[0.5] * 3, reverse=[0.6] * 3)
    for one in found["reverse"]:
        one.settings["data.lowercase"] = True
    with pytest.raises(ValueError, match="rows with the same references"):
        Resampling(found).difference(REVERSING, "bleu")
    assert verdict_of(found).verdict == "not decided"


@pytest.mark.parametrize("trials", [2, 3, 5, 10])
@pytest.mark.parametrize("sentences", [0, 0.5, 1, 4])
def test_intervals_of_few_trials_cover_95_percent(trials, sentences):
    random = np.random.default_rng(2)
    scores = random.normal(size=(40_000, trials))
    known = sentences / trials
    means = scores.mean(axis=1) + random.normal(scale=known**0.5, size=40_000)
    half = half_width(scores.var(axis=1, ddof=1) / trials, trials - 1, known)
    covered = np.mean(np.abs(means) <= half)
    assert 0.945 < covered < 0.9725
    # Much wider intervals would be useless.
    normal = TABLE[trials - 1] * np.sqrt((1 + sentences) / trials)
    assert np.median(half) < 1.1 * normal


def test_what_trials_share_is_no_part_of_the_spread_of_their_sentences():
    random = np.random.default_rng(3)
    scores = random.normal(scale=5, size=4_000) + random.normal(size=(3, 4_000))
    assert spread_of(scores).sentences == pytest.approx(1, rel=0.1)


def drawn_trials(row, trials, deviation, sentences, random):
    """Draw trials of mean cost 1 with three sources of random variation."""
    made = record(row)
    count = len(sentences)
    own = sentences + random.normal(scale=0.02, size=count)
    found = []
    columns = {"source_lengths": [5] * count, "tokens": [1] * count}
    for seed in range(1, trials + 1):
        costs = 1 + own + random.normal(scale=0.02, size=count)
        costs = costs + random.normal(scale=deviation)
        changed = columns | {"negative_log_likelihood": costs.tolist()}
        one = dataclasses.replace(made, seeds=(seed,), sentences=changed)
        found.append(one)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "deviations"),
    [
        pytest.param((3, 3), (0.02, 0.02), marks=pytest.mark.slow),
        ((5, 3), (0.005, 0.015)),
    ],
)
def test_intervals_of_rows_cover_95_percent(trials, deviations):
    random = np.random.default_rng(3)
    covered = {"difference": 0, "row": 0}
    names = ("base", "reverse")
    for _ in range(800):
        sentences = random.normal(scale=0.1, size=60)
        rows = {
            row: drawn_trials(row, n, deviation, sentences, random)
            for row, n, deviation in zip(names, trials, deviations, strict=True)
        }
        resampling = Resampling(rows, 60)
        change = resampling.difference(REVERSING, "perplexity")
        base = resampling.difference([(1, "base")], "perplexity")
        covered["difference"] += change.low <= 0 <= change.high
        covered["row"] += base.low <= np.e <= base.high
    for times in covered.values():
        assert 0.93 <= times / 800 <= 0.975
