import random

import pytest

from luong_keras.config import FilterConfig
from luong_keras.data.datasets import MAX_PAIRS, held_out_pairs, pair_hash


def pairs_of(count):
    return [(f"source {i}", f"target {i}") for i in range(count)]


@pytest.mark.parametrize(
    "count, size",
    [
        *[(3, 1), (15, 1), (200, 20), (999, 99), (1000, 100), (4000, 100)],
        *[(6000, 120), (49_000, 980), (60_000, MAX_PAIRS)],
    ],
)
def test_held_out_share_depends_on_text_size(count, size):
    dev, test = held_out_pairs(pairs_of(count), 2)
    assert len(dev) == len(test) == size
    assert not dev.keys() & test.keys()


@pytest.mark.parametrize("count", [300, 6000])
def test_order_and_repetitions_do_not_matter(count):
    pairs = pairs_of(count)
    mixed = pairs * 2
    random.Random(0).shuffle(mixed)
    assert held_out_pairs(pairs, 2) == held_out_pairs(mixed, 2)
    # The number of parts does not change the first part.
    assert held_out_pairs(pairs, 2)[0] == held_out_pairs(pairs, 1)[0]


def test_bad_pairs_are_not_held_out():
    bad = [("", "x"), ("x", " "), ("x", None), ("\udcff", "x")]
    found = held_out_pairs(pairs_of(50) + bad * 9, 2)
    assert found == held_out_pairs(pairs_of(50), 2)


def test_hash_distinguishes_sides_and_ignores_surrounding_spaces():
    assert pair_hash("a b", "c") != pair_hash("a", "b c")
    assert pair_hash("a", "b") != pair_hash("b", "a")
    assert pair_hash("a\ud83d", "b") != pair_hash("a", "b")
    assert pair_hash(" a", "b  ") == pair_hash("a", "b")


def test_too_few_pairs_are_refused():
    with pytest.raises(ValueError, match="at least 3 .* Received: 2"):
        held_out_pairs(pairs_of(2) * 5, 2)


@pytest.mark.parametrize(
    "pair, filters, message",
    [
        (("x\udcff", "y"), None, "is not UTF-8 .*, such as 1: 'x"),
        (("x", None), None, "there is no second column.*, such as 1"),
        (("", "y"), None, "10 that cannot .* the source sentence is empty"),
        (
            ("x", "y"),
            FilterConfig(scripts=("Cyrillic", "Latin")),
            "fewer than half of the source's letters are of its script",
        ),
        (
            ("x", "y"),
            FilterConfig(scripts=("Klingon", "Latin")),
            "names scripts of Unicode.*Received: 'Klingon'",
        ),
    ],
)
def test_too_few_usable_pairs_are_explained(pair, filters, message):
    with pytest.raises(ValueError, match=message):
        held_out_pairs([pair] * 10, 2, filters)
