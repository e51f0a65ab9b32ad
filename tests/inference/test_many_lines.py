"""Translation of many lines, in concurrent batches and bounded memory."""

import functools
import itertools
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf

from luong_keras.inference import line_search, text_translator
from luong_keras.text import threads
from luong_keras.text.threads import (
    available_cores,
    batches_at_once,
    share_cores,
)
from luong_keras.truncation import TruncationWarning
from tests.inference.variants import variant_of
from tests.serving.tiny_translator import tiny_translator

WORDS = ["the", "cat", "sees", "a", "dog", "house", "."]
# Lines of many lengths, of which no two neighbours have the same.
LINES = [
    " ".join(itertools.islice(itertools.cycle(WORDS[i % 5 :]), 1 + i * 5 % 13))
    for i in range(41)
]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(batch_size=2, length_penalty=1.0)


@pytest.fixture
def concurrent(translator, monkeypatch):
    """Allow four batches at once; record how many run when one begins."""
    monkeypatch.setattr(line_search, "batches_at_once", lambda: 4)
    found, running, lock = [], set(), threading.Lock()
    search = translator._line_search._configured_search

    def watched(text, count):
        with lock:
            running.add(text.ref())
            found.append(len(running))
        answer = search(text, count)
        with lock:
            running.remove(text.ref())
        return answer

    monkeypatch.setattr(translator._line_search, "_configured_search", watched)
    return found


@pytest.mark.slow
def test_concurrent_batches_equal_sequential_batches(
    translator, concurrent, monkeypatch
):
    found = translator.translate(LINES)
    assert 2 <= max(concurrent) <= 4 and len(concurrent) == 21
    # The first batch builds the graph before the others start.
    assert concurrent[:2] == [1, 1]
    ranked = translator.nbest(LINES)
    assert found == [translations[0].text for translations in ranked]
    concurrent.clear()
    monkeypatch.setattr(line_search, "batches_at_once", lambda: 1)
    assert translator.translate(LINES) == found
    assert max(concurrent) == 1
    assert [translator.translate([line])[0] for line in LINES[:5]] == found[:5]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::luong_keras.truncation.TruncationWarning")
def test_threads_share_a_translator(translator):
    """Also at its first calls, as in a web server."""

    def call(owner, place):
        lines = LINES[place : place + 9]
        if place % 2:
            scored = owner.score(lines, lines)
            return [result.log_probability for result in scored]
        return [(best.text, best.score) for best, *_ in owner.nbest(lines)]

    shared = tiny_translator(batch_size=2, length_penalty=1.0)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(functools.partial(call, shared), range(6)))
    assert found == [call(translator, place) for place in range(6)]


def test_eager_searches_use_no_threads(translator, concurrent, monkeypatch):
    monkeypatch.setattr(tf.config, "functions_run_eagerly", lambda: True)
    translator.translate(LINES[:12])
    assert max(concurrent) == 1


@pytest.mark.slow
def test_searches_in_a_distribution_strategy_use_no_threads(
    translator, concurrent
):
    """Other threads lack its scope and would build the graph again."""
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        translator.translate(LINES[:12])
    assert max(concurrent) == 1


@pytest.mark.slow
def test_errors_of_a_batch_are_raised(translator, monkeypatch):
    search = translator._line_search._configured_search

    def broken(text, count):
        if text.shape[0] == 1:  # the last batch
            raise MemoryError("no room")
        return search(text, count)

    monkeypatch.setattr(translator._line_search, "_configured_search", broken)
    with pytest.raises(MemoryError, match="no room"):
        translator.translate(LINES)


@pytest.mark.slow
def test_endless_lines_are_translated_lazily(translator, monkeypatch):
    monkeypatch.setattr(text_translator, "_BATCHES_AHEAD", 3)
    read = []

    def endless():
        for line in itertools.cycle(LINES):
            read.append(line)
            yield line

    answers = translator.translate_lines(endless())
    found = list(itertools.islice(answers, 13))
    assert found == translator.translate(LINES[:13])
    assert len(read) == 18, "three times three batches of two"
    assert list(translator.translate_lines(iter(LINES[:7]))) == found[:7]
    assert list(translator.translate_lines([])) == []


@pytest.mark.slow
def test_options_and_wrong_arguments_of_translate_lines(eager, translator):
    (found,) = translator.translate_lines(iter(LINES[:1]), prefix="zwei")
    assert found.split()[0] == "zwei"
    assert found == translator.translate(LINES[:1], prefix="zwei")[0]
    with pytest.raises(ValueError, match="one value of `prefix` for all"):
        translator.translate_lines(LINES[:2], prefix=["a", "b"])


@pytest.mark.slow
def test_line_ends_are_not_translated(translator):
    ended = [line + "\n" for line in LINES[:4]]
    assert list(translator.translate_lines(ended)) == translator.translate(
        LINES[:4]
    )


@pytest.mark.parametrize(
    "cores, batches, share", [(1, 1, 1), (2, 2, 1), (8, 8, 1), (36, 8, 4)]
)
def test_cores_are_shared(monkeypatch, cores, batches, share):
    name = "TF_NUM_INTRAOP_THREADS"
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    monkeypatch.delenv(name, raising=False)
    assert batches_at_once() == batches
    share_cores()
    assert os.environ[name] == str(share)
    monkeypatch.setenv(name, "3")
    share_cores()
    assert os.environ[name] == "3", "the setting of the user"


def test_cores_are_those_of_the_container(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert available_cores() == 1


@pytest.mark.slow
def test_calls_warn_once_of_lines_that_were_cut(translator, monkeypatch):
    monkeypatch.setattr(text_translator, "_BATCHES_AHEAD", 1)

    def best_of_each():
        # Tracing takes longer than the call.
        tf.config.run_functions_eagerly(True)
        try:
            return short.nbest(LINES, n_best=1)
        finally:
            tf.config.run_functions_eagerly(False)

    short = variant_of(translator, max_source_length=8, batch_size=16)
    sizes = [len(line.split()) for line in LINES]
    cut = [place for place, size in enumerate(sizes) if size > 8]
    assert len(cut) > 10
    first = ", ".join(map(str, cut[:10]))
    expected = f"8 tokens .* {len(cut)} of the lines .place {first}, …"

    def lines_before_an_error():
        lines = itertools.chain(LINES, map(int, ["no number"]))
        with pytest.raises(ValueError, match="no number"):
            list(short.translate_lines(lines))

    calls = [
        lambda: short.translate(LINES),
        best_of_each,
        lambda: list(short.translate_lines(iter(LINES))),
        lines_before_an_error,
    ]
    for call in calls:
        with pytest.warns(TruncationWarning, match=expected) as caught:
            call()
        (warning,) = caught
        assert warning.filename == __file__
        assert warning.message.places.count == len(cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Cut at the maximum length")
        short.translate([line for line in LINES if len(line.split()) <= 8])


@pytest.mark.slow
def test_phrases_that_were_left_out_are_warned_of(eager, translator):
    with pytest.warns(TruncationWarning, match="place 1.*without the phrase"):
        translator.translate(LINES[:3], required=["", "Zebra", ""])
