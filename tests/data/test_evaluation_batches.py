import numpy as np
import pytest
import tensorflow as tf

from luong_keras.data.evaluation_batches import EvaluationBatches
from luong_keras.text.word_tokenizer import WordTokenizer

TOKENIZER = WordTokenizer.from_words(["a", "b"])
SOURCES = ["a", "", "a b a", "b b", "a a a a a"]


def test_sentences_are_sorted_longest_first_and_cut():
    batches = EvaluationBatches(SOURCES, TOKENIZER, 2, max_length=3)
    assert (len(batches), batches.cut) == (3, 1)
    received = list(batches)
    # Sentences that are cut to equal length keep their order.
    indices = [batch["indices"].tolist() for batch in received]
    assert indices == [[2, 4], [3, 0], [1]]
    assert [batch["source"].tolist() for batch in received] == [
        [[4, 5, 4], [4, 4, 4]],
        [[5, 5], [4, 0]],
        [[0]],  # An empty sentence has width 1.
    ]
    assert all(batch["source"].dtype == np.int32 for batch in received)


def test_many_tokenizers_cause_no_warning(caplog, monkeypatch):
    # Like a program that trains several translators in turn.
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    for _ in range(9):
        tokenizer = WordTokenizer.from_words(["a", "b"])
        assert len(EvaluationBatches(SOURCES, tokenizer, 2, 4)) == 3
    assert not caplog.records


TARGET_TOKENIZER = WordTokenizer.from_words(["x", "y", "a"])


@pytest.mark.parametrize(
    ("targets", "cut"),
    [
        (["x", "y", "x y"], 0),
        (["x", "y", "x y a"], 1),
        # A pair with two over-long sides counts once.
        (["x", "y y y", "x y a"], 2),
    ],
)
def test_cut_pairs_are_counted_once(targets, cut):
    sources = ["a a", "b", "b a"]
    parts = (TOKENIZER, 3, 2, targets, TARGET_TOKENIZER)
    assert EvaluationBatches(sources, *parts).cut == cut
    sources[2] += " b"
    assert EvaluationBatches(sources, *parts).cut == max(cut, 1)


def test_batches_of_pairs_by_hand():
    pairs = [
        ("a", "x y"),
        ("b a", "y"),
        ("a b a b", "a x"),  # the source loses its last word
        ("b b a", "y x a a"),  # the target loses its last word
        ("b", "y x"),  # as long as the first pair: keeps its order
        ("", ""),
    ]
    sources, targets = map(list, zip(*pairs, strict=True))
    arguments = TOKENIZER, 4, 3, targets, TARGET_TOKENIZER
    batches = EvaluationBatches(sources, *arguments)
    received = [{n: array.tolist() for n, array in b.items()} for b in batches]
    # Sorted by target length, then source length.
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
    for batch, tensors in zip(received, batches.dataset(), strict=True):
        given = {name: t.numpy().tolist() for name, t in tensors.items()}
        assert batch == {"indices": batch["indices"], **given}


def test_dataset_gives_the_same_batches():
    batches = EvaluationBatches(SOURCES, TOKENIZER, 2, 50)
    dataset = batches.dataset()
    assert int(dataset.cardinality()) == 3
    assert dataset.element_spec["source"].shape.as_list() == [None, None]
    for batch, tensors in zip(batches, dataset, strict=True):
        assert list(tensors) == ["source"]
        np.testing.assert_array_equal(batch["source"], tensors["source"])


def test_no_sentences_give_no_batches():
    assert list(EvaluationBatches([], TOKENIZER, 2, 50)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be an integer and at least 1"),
        ({"max_length": 0}, "`max_length` must be an integer and at least 1"),
        ({"targets": ["a"]}, "go together"),
        ({"targets": ["a"], "target_tokenizer": TOKENIZER}, "one sentence"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    options = {"batch_size": 2, "max_length": 9, **options}
    with pytest.raises(ValueError, match=message):
        EvaluationBatches(SOURCES, TOKENIZER, **options)
