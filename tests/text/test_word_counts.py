"""Words counted on several threads, and by a call that goes on."""

from collections import Counter

import pytest
import tensorflow as tf

from luong_keras.text import word_counts
from luong_keras.text.threads import in_threads
from luong_keras.text.word_counts import count_words
from luong_keras.text.word_tokenizer import WordTokenizer

LINES = [f"w{i % 7} w{i % 3} ö" for i in range(100)] + [""]
EXPECTED = Counter(word.encode() for line in LINES for word in line.split())


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(word_counts, "_LINES_PER_CALL", 10)
    monkeypatch.setattr(word_counts, "_CALLS_PER_NOTE", 2)


@pytest.mark.parametrize("threads", [1, 3, None])
def test_the_counts_are_those_of_one_thread(small_batches, threads):
    assert count_words(LINES, tf.strings.split, threads) == EXPECTED


def test_a_count_that_was_interrupted_goes_on(small_batches, tmp_path):
    note = tmp_path / "words.npz"
    split = []

    def counting(batch):
        tf.py_function(lambda x: split.append(len(x)), [batch], [])
        return tf.strings.split(batch)

    def stopped():
        yield from LINES[:55]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        count_words(stopped(), counting, note=(note, "text"))
    assert sum(split) == 50 and note.exists()
    split.clear()
    assert count_words(LINES, counting, note=(note, "text")) == EXPECTED
    assert sum(split) == len(LINES) - 40
    # That of another text, and a damaged one, count for nothing.
    for key in ("other", "text"):
        assert count_words(LINES, counting, note=(note, key)) == EXPECTED
        note.write_bytes(b"damaged")
    threads = WordTokenizer.train(LINES, 9, threads=2)
    assert threads.fingerprint == WordTokenizer.train(LINES, 9).fingerprint


def test_batches_are_few_at_a_time():
    given = []
    batches = (given.append(i) or i for i in range(50))
    for number, result in enumerate(in_threads(str, batches, 2)):
        assert result == str(number)
        assert len(given) - number <= 2 * 2 + 2
    assert number == 49
