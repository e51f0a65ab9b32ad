from typing import NamedTuple

import pytest

from luong_keras.inference.translation import places_by_length
from luong_keras.recipe.batched_progress import with_batched_progress
from luong_keras.truncation import TruncatedPlaces, cut_pairs
from tests.terminals import terminal


class Pair(NamedTuple):
    truncated: bool


LINES = ["a b", "a", "", "a b c d", "b", "c a b", "b a"]


def test_the_batches_are_those_that_a_translator_makes():
    """So an answer is the same to the last digit."""
    batches = []

    def answer(lines):
        # It sorts what it is given once more.
        (places,) = places_by_length(lines, 3)
        batches.append([lines[i] for i in places])
        assert batches[-1] == lines
        return lines

    assert with_batched_progress(answer, LINES, size=3, what="") == LINES
    assert batches == [
        [LINES[i] for i in places] for places in places_by_length(LINES, 3)
    ]


def test_batches_are_of_like_length_in_the_last_column():
    batches = []

    def answer(sources, targets):
        batches.append(list(zip(sources, targets, strict=True)))
        return targets

    targets = ["xxx", "x", "xx", "xxxx"]
    assert (
        with_batched_progress(answer, list("abcd"), targets, size=2, what="")
        == targets
    )
    assert batches == [[("b", "x"), ("c", "xx")], [("a", "xxx"), ("d", "xxxx")]]


def test_every_batch_moves_the_bar(monkeypatch):
    sizes = []

    def answer(lines):
        sizes.append(len(lines))
        return [line.upper() for line in lines]

    with terminal(monkeypatch) as seen:
        found = with_batched_progress(answer, LINES, size=3, what="shouting")
    assert found == [line.upper() for line in LINES]
    assert sizes == [3, 3, 1]
    assert "shouting" in seen.text


@pytest.mark.parametrize("size", [3, 100])
def test_one_line_tells_what_was_cut_in_all_batches(capsys, size):
    def answer(lines):
        cut = TruncatedPlaces()
        for place, line in enumerate(lines):
            cut.add(place, len(line) > 3)
        cut.warn(stacklevel=1)
        return lines

    with_batched_progress(answer, LINES, size=size, what="shouting")
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("shouting: Expected") and "place 3, 5" in line

    def scored(lines):
        cut_pairs(Pair(len(line) > 3) for line in lines).warn(stacklevel=1)
        return lines

    with_batched_progress(scored, LINES, size=size, what="scoring")
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("scoring: 2 pairs (place 3, 5) were cut")
