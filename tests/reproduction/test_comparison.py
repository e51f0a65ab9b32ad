"""Verdicts: what is above zero, and what chance alone could be."""

import dataclasses

import numpy as np
import pytest

from luong_keras.reproduction import comparison
from luong_keras.reproduction.comparison import (
    Resampling,
    is_long,
    permutation_p,
    verdicts,
)
from tests.reproduction.made_up_rows import builtin_plan, record


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


@pytest.mark.parametrize(
    ("base", "reverse", "expected"),
    [(0.5, 0.7, "holds"), (0.7, 0.5, "does not hold"), (0.5, 0.5, "not decid")],
)
def test_a_claim_holds_where_the_interval_is_above_zero(
    base, reverse, expected
):
    found = verdict_of(Resampling(rows(base=base, reverse=reverse)), "Revers")
    assert found.verdict.startswith(expected)
    assert found.value.low <= found.value.value <= found.value.high


def test_rows_that_were_not_run_are_named():
    found = verdict_of(Resampling(rows(base=0.5)), "Reversing")
    assert (found.verdict, found.missing) == ("not tried", ("reverse",))


def test_trials_that_disagree_decide_nothing():
    # Each pair of trials alone would decide.
    found = rows(base=[0.4, 0.7], reverse=[0.5, 0.65])
    assert verdict_of(Resampling(found), "Revers").verdict == "not decided"
    alone = {name: records[:1] for name, records in found.items()}
    assert verdict_of(Resampling(alone), "Revers").verdict == "holds"


def test_a_gain_is_a_difference_of_differences():
    found = rows(feed=0.5, feed_unk=0.52, global_dot=0.5, global_dot_unk=0.7)
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
        "feed": [record("feed", aer=0.4)],
        "local-p": [record("local-p", aer=0.3)],
    }
    start = "Local attention aligns better than global (location) does: local-"
    assert verdict_of(Resampling(found), start + "p").verdict == "holds"
    assert verdict_of(Resampling(found), start + "m").verdict == "not tried"
    value = Resampling(found).difference([(1, "feed"), (-1, "local-p")], "aer")
    assert value.value == pytest.approx(0.1)


def test_rows_are_compared_on_the_same_sentences():
    # What one row has right, the other has too: no draw tells them apart.
    one = record("base")
    twin = dataclasses.replace(one, row="reverse")
    found = Resampling({"base": [one], "reverse": [twin]}, 50)
    assert found.scores("base", "bleu").std() > 0
    value = found.difference([(1, "reverse"), (-1, "base")], "bleu")
    assert value == (0, 0, 0)


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
    scores = Resampling({"base": [made]}, 4000).scores("base", "perplexity")
    spread = np.log(scores).std()
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
    assert permutation_p(xs, 2 * xs) == pytest.approx(2 / 6)
    assert permutation_p(np.arange(9.0), np.arange(9.0)) < 0.01
    assert comparison.correlation(xs, np.ones(3)) == 0.0


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
    # Two trials that differ by d: their mean has a deviation of d / 2.
    resampling = Resampling({"base": with_trials("base", 0.3, 0.7)}, 4000)
    scores = resampling.scores("base", "bleu")
    apart = np.ptp([r.scores["bleu"]["score"] for r in resampling.rows["base"]])
    assert scores.std() == pytest.approx(apart / 2, rel=0.05)


def test_a_verdict_says_how_many_seeds_it_rests_on():
    found = rows(base=[0.5, 0.5], reverse=0.7)
    assert verdict_of(Resampling(found), "Revers").trials == 1
    found = rows(base=[0.5, 0.5], reverse=[0.7, 0.7, 0.7])
    assert verdict_of(Resampling(found), "Revers").trials == 2


def test_a_training_counts_once_in_a_correlation():
    names = ("base", "reverse", "dropout")
    found = {name: [record(name)] for name in names}
    twin = dataclasses.replace(record("dropout"), row="local-p-unk")
    told = verdict_of(Resampling(found | {"local-p-unk": [twin]}), "Progress")
    assert told.verdict == "not tried" and "local-p-unk" not in told.missing
