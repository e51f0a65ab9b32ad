"""Alignment error rate: hand-computed and published values, parsing."""

import gzip

import numpy as np
import pytest

from luong_keras.alignment.aer import (
    AlignmentLinks,
    LinkScores,
    alignment_error_rate,
    best_links,
    parse_alignments,
)
from luong_keras.alignment.links import format_links


def test_hand_computed_scores():
    gold = parse_alignments(["0-0 1-1 1p2 3p3", "0-1 1?0"])
    # First: A = 4, A∩S = 1, A∩P = 3, S = 2. Second: 1, 0, 1, 1. The repeated
    # link counts once.
    found = [[(0, 0), (1, 2), (3, 3), (2, 2), (0, 0)], [(1, 0)]]
    scores = LinkScores()
    for links, reference in zip(found, gold, strict=True):
        scores.add(links, reference)
    rate = 1 - (1 + 3 + 0 + 1) / (4 + 2 + 1 + 1)
    measured = scores.precision, scores.recall, scores.error_rate
    assert measured == pytest.approx((4 / 5, 1 / 3, rate))
    assert alignment_error_rate(found, gold) == pytest.approx(rate)


def test_scores_without_links():
    scores = LinkScores()
    assert (scores.precision, scores.recall) == (1, 1)
    with pytest.raises(ValueError, match="undefined without links"):
        scores.error_rate  # noqa: B018
    scores.add([], parse_alignments(["0-0"])[0])
    assert (scores.precision, scores.recall, scores.error_rate) == (1, 0, 1)


def test_sure_links_are_possible_links():
    gold = [AlignmentLinks(frozenset({(0, 0)}), frozenset())]
    assert alignment_error_rate([[(0, 0)]], gold) == 0.0
    # The direction matters.
    gold = parse_alignments(["0-1"])
    assert alignment_error_rate([[(1, 0)]], gold) == 1.0


def test_alignments_are_parsed():
    zero, empty, one = parse_alignments(["3-0 2p1 4?5\n", "\n", "10-12"])
    assert zero.sure == {(3, 0)}
    assert zero.possible == {(3, 0), (2, 1), (4, 5)}
    assert empty == (frozenset(), frozenset())
    assert one.sure == {(10, 12)}
    shifted = parse_alignments(["3-1 2p2 1?1"], one_based=True)[0]
    assert shifted == ({(2, 0)}, {(2, 0), (1, 1), (0, 0)})
    text = "0-1 2-0 2-10 10-2"
    assert format_links(parse_alignments([text])[0].sure) == text
    assert format_links([]) == ""


@pytest.mark.parametrize(
    "text", ["1", "1-", "a-b", "1-2-3", "-1-2", "1:2", "0-1"]
)
def test_malformed_links_name_their_line(text):
    with pytest.raises(ValueError, match=f"'{text}' in line 2"):
        parse_alignments(["1-1", f"1-1 {text}"], one_based=True)


def test_invalid_corpora_are_refused():
    with pytest.raises(ValueError, match="1 and 0"):
        alignment_error_rate([[(0, 0)]], [])
    with pytest.raises(ValueError, match="undefined"):
        alignment_error_rate([[]], parse_alignments([""]))


def test_best_links_ignore_padding_and_empty_rows():
    weights = np.array([[0.1, 0.3, 0.6], [0.5, 0.4, 0.1], [0.0, 0.0, 0.0]])
    assert best_links(weights, 2, 3) == {(1, 0), (0, 1)}
    assert best_links(weights, 3, 1) == {(2, 0)}


@pytest.mark.parametrize("shape", [(2,), (2, 3), (4, 2), (1, 4, 3)])
def test_best_links_need_enough_weights(shape):
    with pytest.raises(ValueError, match="at least"):
        best_links(np.zeros(shape), 3, 4)


@pytest.fixture
def real_lines(real_data):
    def read(name):
        content = real_data("alignments", f"{name}.gz").read_bytes()
        return gzip.decompress(content).decode("utf-8-sig").splitlines()

    return read


def test_published_rate_of_a_real_system(real_lines):
    gold = parse_alignments(real_lines("enfr.gold"), one_based=True)
    system = parse_alignments(real_lines("enfr.awesome-align.out"))
    assert len(gold) == 447
    rate = alignment_error_rate([links.sure for links in system], gold)
    assert rate == pytest.approx(0.041, abs=0.0005)


def test_sure_links_of_a_hand_aligned_corpus(real_lines):
    gold = parse_alignments(real_lines("europarl100.de-en"))
    assert sum(len(links.sure) for links in gold) == 1233
    assert all(links.sure == links.possible for links in gold)
    assert alignment_error_rate([links.sure for links in gold], gold) == 0.0
    sides = real_lines("europarl100.de"), real_lines("europarl100.en")
    lines = enumerate(zip(gold, *sides, strict=True), start=1)
    outside = [
        number
        for number, (links, source, target) in lines
        if max(i for i, _ in links.sure) >= len(source.split())
        or max(j for _, j in links.sure) >= len(target.split())
    ]
    # An error of the annotator: the last links exceed the English sentence.
    assert outside == [63]
