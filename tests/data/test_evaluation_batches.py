"""Batches for decoding."""

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.data.evaluation_batches import EvaluationBatches
from luong_keras.text.word_tokenizer import WordTokenizer

TOKENIZER = WordTokenizer.from_words(["a", "b"])
SOURCES = ["a", "", "a b a", "b b", "a a a a a"]


def test_each_sentence_once_longest_first_and_cut():
    batches = EvaluationBatches(SOURCES, TOKENIZER, 2, max_length=4)
    assert (len(batches), batches.cut) == (3, 1)
    received = list(batches)
    assert [batch["indices"].tolist() for batch in received] == [
        [4, 2],
        [3, 0],
        [1],
    ]
    assert [batch["source"].tolist() for batch in received] == [
        [[4, 4, 4, 4], [4, 5, 4, 0]],
        [[5, 5], [4, 0]],
        [[0]],  # At least one wide.
    ]
    assert all(batch["source"].dtype == np.int32 for batch in received)


def test_targets_come_with_sentence_marks():
    batches = EvaluationBatches(
        ["a", "b"], TOKENIZER, 2, 2, ["a a a", ""], TOKENIZER
    )
    assert batches.cut == 1
    (batch,) = batches
    assert batch["indices"].tolist() == [0, 1]
    assert batch["target_in"].tolist() == [[2, 4, 4], [2, 0, 0]]
    assert batch["target_out"].tolist() == [[4, 4, 3], [3, 0, 0]]


def test_many_tokenizers_in_a_process_are_no_warning(caplog, monkeypatch):
    # As where a program trains one translator after the other.
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    for _ in range(9):
        tokenizer = WordTokenizer.from_words(["a", "b"])
        assert len(EvaluationBatches(SOURCES, tokenizer, 2, 4)) == 3
    assert not caplog.records


OTHER = WordTokenizer.from_words(["x", "y", "a"])


@pytest.mark.parametrize(
    ("targets", "cut"),
    [
        (["x", "y", "x y"], 0),
        (["x", "y", "x y a"], 1),
        # A pair with two long sides is one pair.
        (["x", "y y y", "x y a"], 2),
    ],
)
def test_pairs_that_are_cut_are_counted_once(targets, cut):
    sources = ["a a", "b", "b a"]
    parts = (TOKENIZER, 3, 2, targets, OTHER)
    assert EvaluationBatches(sources, *parts).cut == cut
    sources[2] += " b"
    assert EvaluationBatches(sources, *parts).cut == max(cut, 1)


def test_both_sides_by_hand():
    pairs = [
        ("a", "x y"),
        ("b a", "y"),
        ("a b a b", "a x"),  # the last one of its source is cut
        ("b b a", "y x a a"),  # the last one of its target is cut
        ("b", "y x"),  # after the first pair, which is as long
        ("", ""),
    ]
    sources, targets = map(list, zip(*pairs, strict=True))
    batches = EvaluationBatches(sources, TOKENIZER, 4, 3, targets, OTHER)
    received = [
        {name: array.tolist() for name, array in batch.items()}
        for batch in batches
    ]
    # The target's length decides, then the source's.
    assert received == [
        {
            "indices": [3, 2, 0, 4],
            "source": [[5, 5, 4], [4, 5, 4], [4, 0, 0], [5, 0, 0]],
            "target_in": [
                [2, 5, 4, 6],
                [2, 6, 4, 0],
                [2, 4, 5, 0],
                [2, 5, 4, 0],
            ],
            "target_out": [
                [5, 4, 6, 3],
                [6, 4, 3, 0],
                [4, 5, 3, 0],
                [5, 4, 3, 0],
            ],
        },
        {
            "indices": [1, 5],
            "source": [[5, 4], [0, 0]],
            "target_in": [[2, 5], [2, 0]],
            "target_out": [[5, 3], [3, 0]],
        },
    ]
    for ours, theirs in zip(received, batches.dataset(), strict=True):
        given = {name: t.numpy().tolist() for name, t in theirs.items()}
        assert ours == {"indices": ours["indices"], **given}


def test_what_is_cut_to_one_length_keeps_its_order():
    (batch,) = EvaluationBatches(["a a", "b b b"], TOKENIZER, 2, 2)
    assert batch["indices"].tolist() == [0, 1]


def test_the_dataset_gives_the_same_batches():
    batches = EvaluationBatches(SOURCES, TOKENIZER, 2, 50)
    dataset = batches.dataset()
    assert int(dataset.cardinality()) == 3
    assert dataset.element_spec["source"].shape.as_list() == [None, None]
    for ours, theirs in zip(batches, dataset, strict=True):
        assert list(theirs) == ["source"]
        np.testing.assert_array_equal(ours["source"], theirs["source"].numpy())


def test_no_sentences_are_no_batches():
    assert list(EvaluationBatches([], TOKENIZER, 2, 50)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size`"),
        ({"max_length": 0}, "`max_length`"),
        ({"targets": ["a"]}, "go together"),
        ({"targets": ["a"], "target_tokenizer": TOKENIZER}, "one sentence"),
    ],
)
def test_arguments_are_checked(options, message):
    options = {"batch_size": 2, "max_length": 9, **options}
    with pytest.raises(ValueError, match=message):
        EvaluationBatches(SOURCES, TOKENIZER, **options)
