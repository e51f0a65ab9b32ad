import pytest

from luong_keras.inference.translation import places_by_length
from luong_keras.recipe.in_steps import in_steps
from luong_keras.truncation import TruncationWarning, warn_of
from tests.terminals import terminal

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

    assert in_steps(answer, LINES, size=3, what="") == LINES
    assert batches == [
        [LINES[i] for i in places] for places in places_by_length(LINES, 3)
    ]


def test_batches_are_of_like_length_in_the_last_column():
    batches = []

    def answer(sources, targets):
        batches.append(list(zip(sources, targets, strict=True)))
        return targets

    targets = ["xxx", "x", "xx", "xxxx"]
    assert in_steps(answer, list("abcd"), targets, size=2, what="") == targets
    assert batches == [[("b", "x"), ("c", "xx")], [("a", "xxx"), ("d", "xxxx")]]


def test_every_batch_moves_the_bar(monkeypatch):
    sizes = []

    def answer(lines):
        sizes.append(len(lines))
        return [line.upper() for line in lines]

    with terminal(monkeypatch) as seen:
        found = in_steps(answer, LINES, size=3, what="shouting")
    assert found == [line.upper() for line in LINES]
    assert sizes == [3, 3, 1]
    assert "shouting" in seen.text


def test_one_warning_tells_of_the_lines_of_all_batches():
    def answer(lines):
        warn_of([len(line) > 3 for line in lines], stacklevel=1)
        return lines

    with pytest.warns(TruncationWarning, match="place 3, 5") as told:
        in_steps(answer, LINES, size=3, what="")
    assert len(told) == 1
