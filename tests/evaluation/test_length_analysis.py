import pytest

from luong_keras.evaluation.length_analysis import bleu_by_length
from luong_keras.evaluation.translation_scores import corpus_bleu

GOOD, BAD = "das ist ein guter Satz", "ein guter Satz ist das hier"


def test_groups_have_limits_and_scores():
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


def test_columns_of_a_data_frame_are_read_by_place():
    pandas = pytest.importorskip("pandas")
    columns = {"words": [5, 12], "ours": [BAD, GOOD], "theirs": [GOOD, GOOD]}
    frame = pandas.DataFrame(columns)[::-1]
    columns = [frame[name] for name in frame]
    groups = bleu_by_length(*columns, limits=(10,))
    assert groups == bleu_by_length(*map(list, columns), limits=(10,))
    assert [group.bleu > 99 for group in groups] == [False, True]


@pytest.mark.parametrize(
    ("lengths", "limits", "message"),
    [
        ([1, 2], (10,), "2 lengths and 1 sentence"),
        ([1], (10, 10), r"\(10, 10\)"),
        ([1], (0, 10), r"\(0, 10\)"),
    ],
)
def test_invalid_arguments_are_refused(lengths, limits, message):
    with pytest.raises(ValueError, match=message):
        bleu_by_length(lengths, [GOOD], [GOOD], limits)
