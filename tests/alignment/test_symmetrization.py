"""Symmetrised links: by hand, by the program of Moses, and invariants."""

import random

import pytest

from luong_keras.alignment.aer import parse_alignments
from luong_keras.alignment.symmetrization import METHODS, symmetrize


def links_of(text):
    return parse_alignments([text])[0].sure


# Source words across, target words down; F forward, B backward, X both.
#     0 1 2 3 4
#   0 X . . . .
#   1 . F . . .    touches 0-0 at a corner, covers source 1 and target 1
#   2 . B X . .    touches 2-2, but both of its words are covered by then
#   3 . . . . .
#   4 F . . . B    0-4 covers only target 4, 4-4 covers two words
FORWARD = links_of("0-0 1-1 2-2 0-4")
BACKWARD = links_of("0-0 1-2 2-2 4-4")


@pytest.mark.parametrize(
    "method, expected",
    [
        (["intersection"], "0-0 2-2"),
        (["union"], "0-0 1-1 1-2 2-2 0-4 4-4"),
        (["grow-diag"], "0-0 1-1 2-2"),
        (["grow-diag-final"], "0-0 1-1 2-2 0-4 4-4"),
        (["grow-diag-final-and"], "0-0 1-1 2-2 4-4"),
        ([], "0-0 1-1 2-2 0-4 4-4"),  # the default is grow-diag-final
    ],
)
def test_links_symmetrised_by_hand(method, expected):
    assert symmetrize(FORWARD, BACKWARD, *method) == links_of(expected)


# The output of Moses' `symal` (commit 14d2a67) where order matters: of the
# pairs, of the neighbours, and of the two directions in the final step.
@pytest.mark.parametrize(
    "forward, backward, grown, final, final_and",
    [
        (
            *("0-1 0-2 1-0 3-3", "0-0 2-3 3-3 4-4", "2-3 3-3 4-4"),
            *("0-1 0-2 1-0 2-3 3-3 4-4", "0-1 1-0 2-3 3-3 4-4"),
        ),
        (
            *("0-0 1-1 3-4 4-3", "0-4 1-3 2-1 3-1 4-3 5-4", "3-4 4-3 5-4"),
            *("0-0 1-1 2-1 3-4 4-3 5-4", "0-0 1-1 3-4 4-3 5-4"),
        ),
        (
            *("2-1 2-2 4-0", "0-0 1-0 2-2 3-1 4-0", "2-2 3-1 4-0"),
            *("0-0 1-0 2-2 3-1 4-0", "2-2 3-1 4-0"),
        ),
        ("1-0 1-1", "0-0 1-1", *["0-0 1-0 1-1"] * 3),
    ],
)
def test_links_match_moses(forward, backward, grown, final, final_and):
    both = links_of(forward), links_of(backward)
    assert symmetrize(*both, "grow-diag") == links_of(grown)
    assert symmetrize(*both, "grow-diag-final") == links_of(final)
    assert symmetrize(*both, "grow-diag-final-and") == links_of(final_and)


def random_alignments(count):
    draw = random.Random(3)
    for _ in range(count):
        sources, targets = draw.randint(1, 6), draw.randint(1, 6)
        links = [(i, j) for i in range(sources) for j in range(targets)]
        sizes = [draw.randint(0, len(links) // 2) for _ in range(2)]
        yield [frozenset(draw.sample(links, size)) for size in sizes]


def test_invariants_hold_for_random_alignments():
    for forward, backward in random_alignments(400):
        found = {m: symmetrize(forward, backward, m) for m in METHODS}
        for links in found.values():
            assert forward & backward <= links <= forward | backward
        grown = found["grow-diag"]
        assert grown <= found["grow-diag-final"]
        assert grown <= found["grow-diag-final-and"]
        check_grown(grown, forward, backward)
        for name, needed in (("", 1), ("-and", 2)):
            links = found[f"grow-diag-final{name}"]
            for link in (forward | backward) - links:
                assert uncovered(link, links) < needed
        for method in METHODS:
            assert symmetrize(forward, forward, method) == forward
        for method in ("intersection", "union"):
            assert symmetrize(backward, forward, method) == found[method]


def check_grown(grown, forward, backward):
    """Check that growth is complete and only adds adjacent links."""
    for link in (forward | backward) - grown:
        assert not (touches(link, grown) and uncovered(link, grown))
    grown_so_far = forward & backward
    while more := {k for k in grown - grown_so_far if touches(k, grown_so_far)}:
        grown_so_far |= more
    assert grown_so_far == grown


def touches(link, links):
    i, j = link
    return any(max(abs(i - k), abs(j - m)) == 1 for k, m in links)


def uncovered(link, links):
    i, j = link
    return (i not in {k for k, _ in links}) + (j not in {m for _, m in links})


def test_no_links_give_no_links():
    for method in METHODS:
        assert symmetrize([], [], method) == frozenset()
    # Without an intersection no link is added.
    assert symmetrize([(0, 0)], [(1, 1)], "grow-diag") == frozenset()


def test_unknown_method_is_refused():
    message = r"grow-diag-final-and'\)\. Received:.*gd"
    with pytest.raises(ValueError, match=message):
        symmetrize([], [], "gdf")
