"""BLEU by length."""

import pytest

from luong_keras.evaluation.bleu import corpus_bleu, multi_bleu
from luong_keras.evaluation.length_analysis import (
    bleu_by_length,
    bleu_by_reference_length,
)

GOOD, BAD = "das ist ein guter Satz", "ein guter Satz ist das hier"


def test_groups_and_their_scores():
    lengths = [10, 11, 5, 20, 35]
    hypotheses = [GOOD, BAD, BAD, GOOD, BAD]
    references = [GOOD] * 5
    groups = bleu_by_length(lengths, hypotheses, references, (10, 20, 30))
    limits = [(group.low, group.high, group.sentences) for group in groups]
    # Limits belong to the lower group; empty groups are left out.
    assert limits == [(0, 10, 2), (11, 20, 2), (31, None, 1)]
    assert [group.mean_length for group in groups] == [7.5, 15.5, 35.0]
    mixed = corpus_bleu([GOOD, BAD], [GOOD, GOOD]).score
    bad = corpus_bleu([BAD], [GOOD]).score
    assert [group.bleu for group in groups] == [mixed, mixed, bad]


def test_options_reach_bleu():
    groups = bleu_by_length(
        [5], [GOOD.upper()], [GOOD], tokenize="none", lowercase=True
    )
    assert groups[0].bleu == pytest.approx(100)


@pytest.mark.parametrize(
    ("lengths", "limits", "message"),
    [
        ([1, 2], (10,), "2 lengths and 1 sentence"),
        ([1], (10, 10), r"\(10, 10\)"),
        ([1], (0, 10), r"\(0, 10\)"),
    ],
)
def test_bad_arguments(lengths, limits, message):
    with pytest.raises(ValueError, match=message):
        bleu_by_length(lengths, [GOOD], [GOOD], limits)


def test_groups_of_equally_many_sentences_by_reference_length():
    references = [GOOD, "a b c d", "ein " + GOOD, "e f g h i", "i j k l m"]
    hypotheses = [BAD, "a b c d", "ein " + GOOD, "e f g h x", "i j k l m"]
    groups = bleu_by_reference_length(hypotheses, references, group_size=2)
    # By length, 4 5 | 5 5 | 6; of those with 5 words the first comes first.
    order = [1, 0, 3, 4, 2]
    hypotheses = [hypotheses[row] for row in order]
    references = [references[row] for row in order]
    for group, (start, stop), length in zip(
        groups, [(0, 2), (2, 4), (4, 5)], [5, 5, 6], strict=True
    ):
        alone = multi_bleu(hypotheses[start:stop], references[start:stop])
        together = multi_bleu(hypotheses[:stop], references[:stop])
        assert group == (alone.score, together.score, length, stop - start)


@pytest.mark.parametrize("size", [0, -1])
def test_groups_must_have_sentences(size):
    with pytest.raises(ValueError, match=f"Received: {size}"):
        bleu_by_reference_length([GOOD], [GOOD], size)
