"""Counts and probabilities of aligned word pairs."""

import numpy as np
import pytest

from luong_keras.alignment.word_pairs import aligned_word_pairs

SENTENCES = [
    (["a", "b"], ["x", "y"], [(0, 0), (1, 1)]),
    (["a", "c"], ["x", "z"], [(0, 0), (0, 1), (1, 1)]),
]


def test_rare_pairs_are_left_out_but_counted():
    # Three of the five links leave a; two of them lead to x.
    pairs = aligned_word_pairs(SENTENCES, min_count=2)
    assert pairs == [("a", "x", 2, pytest.approx(2 / 3))]
    pairs = aligned_word_pairs(SENTENCES, min_count=1)
    words = [pair[:3] for pair in pairs]
    assert words == [
        ("a", "x", 2), ("a", "z", 1), ("b", "y", 1), ("c", "z", 1),
    ]  # fmt: skip


def test_links_of_words_outside_the_vocabularies_do_not_count():
    # Without c, only a has links to z; without y, b has no links.
    pairs = aligned_word_pairs(SENTENCES, {"a", "b"}, {"x", "z"}, 1)
    assert pairs == [
        ("a", "x", 2, pytest.approx(2 / 3)),
        ("a", "z", 1, pytest.approx(1 / 3)),
    ]


@pytest.mark.parametrize("link", [(2, 0), (0, 2), (-1, 0), (0, -1)])
def test_link_outside_its_sentences_is_refused(link):
    wrong = (["a", "b"], ["x", "y"], [link])
    with pytest.raises(ValueError, match=f"pair 3 .*{link[0]}-{link[1]}\\."):
        aligned_word_pairs([*SENTENCES, wrong])


def test_links_may_be_rows_of_an_array():
    given = [
        (source, target, np.array(links)) for source, target, links in SENTENCES
    ]
    assert aligned_word_pairs(given) == aligned_word_pairs(SENTENCES)


def test_link_of_an_empty_sentence_is_refused():
    with pytest.raises(ValueError, match="none, since a sentence is empty"):
        aligned_word_pairs([(["a"], [], [(0, 0)])])
