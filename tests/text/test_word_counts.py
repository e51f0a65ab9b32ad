import time
from collections import Counter

import pytest
import tensorflow as tf

from luong_keras.text import tokenizer
from luong_keras.text.threads import map_in_threads
from luong_keras.text.word_tokenizer import WordTokenizer, count_words

LINES = [f"w{i % 7} w{i % 3} ö" for i in range(100)] + [""]
EXPECTED = Counter(word.encode() for line in LINES for word in line.split())


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(tokenizer, "LINES_PER_CALL", 10)


@pytest.mark.parametrize("threads", [1, 3, None])
def test_counts_do_not_depend_on_threads(small_batches, threads):
    assert count_words(LINES, tf.strings.split, threads) == EXPECTED
    several = WordTokenizer.train(LINES, 9, threads=threads)
    assert several.fingerprint == WordTokenizer.train(LINES, 9).fingerprint


def test_batches_in_progress_are_bounded():
    given = []
    batches = (given.append(i) or i for i in range(50))
    for number, result in enumerate(map_in_threads(str, batches, 2)):
        assert result == str(number)
        assert len(given) - number <= 2 * 2 + 2
    assert number == 49


def test_batches_in_the_queue_are_cancelled_at_the_end():
    started = []

    def function(batch):
        started.append(batch)
        if batch:
            time.sleep(0.5)

    results = map_in_threads(function, range(50), 2)
    next(results)
    results.close()  # as an error or Ctrl-C does
    assert len(started) <= 3
