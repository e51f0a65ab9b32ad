"""Batches for decoding."""

import numpy as np
import pytest

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


def test_the_dataset_gives_the_same_batches():
    batches = EvaluationBatches(SOURCES, TOKENIZER, 2, 50)
    dataset = batches.dataset()
    assert int(dataset.cardinality()) == 3
    assert dataset.element_spec["source"].shape.as_list() == [None, None]
    for ours, theirs in zip(batches, dataset, strict=True):
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name].numpy())


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
