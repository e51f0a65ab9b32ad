"""Answers of the client, against those of the translator that is served.

The server is the loopback server, or the TensorFlow Serving that
`LUONG_KERAS_SERVING_URL` names.
"""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product

import numpy as np
import pytest
import tensorflow as tf

from luong_keras_client import TranslationClient
from tests.client.conftest import failure
from tests.serving.tiny_translator import SOURCE_WORDS, tiny_translator

# In batches of two, the shortest first: one batch has no words at all.
LINES = ["the cat sees a zebra .", "", "a Straße .", "", "house", "the " * 12]
TARGETS = ["die Katze", "", "das Haus .", "Hund", "", "sieht zebra"]
needs_tiny_translator = pytest.mark.skipif(
    "LUONG_KERAS_SERVING_URL" in os.environ,
    reason="the server that was named may serve any translator",
)
pytestmark = pytest.mark.filterwarnings(
    "ignore::luong_keras_client.TruncationWarning"
)


@pytest.fixture(
    scope="module",
    params=["rest", pytest.param("grpc", marks=pytest.mark.slow)],
)
def client(request, server):
    with connect(server, request.param, batch_size=2) as connected:
        yield connected


@pytest.fixture(scope="module")
def translator():
    return tiny_translator()


def connect(server, interface, **settings):
    root, _, name = server.rest_url.partition("/v1/models/")
    url = root if interface == "rest" else f"grpc://{server.grpc_target}"
    # The first request of a signature takes long on a busy machine.
    return TranslationClient(url, name, timeout=300, **settings)


def check(found, expected, names=None):
    """Check that dataclasses, or lists of them, have equal fields."""
    if isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            check(one, other, names)
        return
    for name in names or vars(expected):
        value, other = getattr(expected, name), getattr(found, name)
        if isinstance(value, np.ndarray):
            assert (other.dtype, other.shape) == (np.float32, value.shape)
        if isinstance(value, np.ndarray | float):
            np.testing.assert_allclose(other, value, rtol=1e-4, atol=1e-5)
        else:
            assert other == value, name


@needs_tiny_translator
def test_answers_equal_those_of_the_translator(client, translator):
    expected = translator.nbest(LINES)
    found = client.nbest(LINES)
    check(found, expected, ["text", "score", "truncated"])
    assert client.translate(LINES) == [nbest[0].text for nbest in expected]
    for rank in range(max(map(len, found))):
        aligned = client.align(LINES, rank)
        for one, nbest in zip(aligned, expected, strict=True):
            if rank < len(nbest):
                check(one, nbest[rank])
    scored = translator.score(LINES, TARGETS)
    check(client.align_pairs(LINES, TARGETS), scored)
    names = "log_probability", "tokens", "word_log_probabilities", "truncated"
    check(client.score(LINES, TARGETS), scored, names)
    for line, memory in zip(LINES, client.encode(LINES), strict=True):
        encoded = translator.encode_batch(tf.constant([line]))
        length = int(encoded["lengths"][0])
        expected = encoded["memory"][0, :length]
        assert memory.dtype == np.float32 and len(memory) == length
        if length:
            np.testing.assert_allclose(memory, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@needs_tiny_translator
@pytest.mark.parametrize(
    "settings", [{"beam_size": 2}, {"length_penalty": 1.0}]
)
def test_options_equal_settings_of_the_translator(client, settings):
    expected = tiny_translator(**settings).nbest(LINES)
    names = "text", "score", "truncated"
    check(client.nbest(LINES, **settings), expected, names)
    best = [nbest[0].text for nbest in expected]
    assert client.translate(LINES, **settings) == best


@needs_tiny_translator
def test_options_may_differ_per_line(client):
    prefixes = ["das", "", "ein Fisch", "", "Hund", "die"]
    options = {"prefix": prefixes, "n_best": [1, 2, 3, 1, 2, 1]}
    found = client.nbest(LINES, **options)
    for place, line in enumerate(LINES):
        line_options = {name: values[place] for name, values in options.items()}
        check(found[place], client.nbest([line], **line_options)[0])
        if line:
            assert len(found[place]) == line_options["n_best"]
            for translation in found[place]:
                assert translation.text.startswith(prefixes[place])


def test_limits_of_the_contract(client):
    contract = client.contract()
    assert contract.version == 3 and contract.max_rows >= 1
    lines = ["the cat"] * (contract.max_rows + 1)
    with connect_like(client, batch_size=len(lines)) as large:
        assert len(set(large.translate(lines))) == 1
    too_long = "a" * (contract.max_text_bytes + 1)
    with pytest.raises(ValueError, match="at place 1") as caught:
        client.translate(["the cat", too_long])
    assert caught.value.results[0] == client.translate(["the cat"])[0]


def connect_like(client, **settings):
    return TranslationClient(client.url, client.model, **settings)


@needs_tiny_translator
def test_invalid_unicode_is_replaced(client):
    lines = ["\udce4 caf\udcff", b"\xe4 caf\xff", "\ufffd caf\ufffd"]
    found = [one.source_tokens for one in client.align(lines)]
    assert found == [["\ufffd", "caf\ufffd"]] * 3
    assert client.encode(["Straße".encode(), "Straße"])[0].shape[0] == 1


def test_versions_may_be_pinned(client):
    (version,) = [v for v, s in client.status().items() if s == "AVAILABLE"]
    with connect_like(client, version=version) as pinned:
        assert pinned.translate(LINES) == client.translate(LINES)
    for settings in ({"version": version + 1}, {"label": "no such"}):
        error = failure(client.url, model=client.model, **settings)
        assert error.code in ("NOT_FOUND", "INVALID_ARGUMENT")
    error = failure(client.url, "no such/model", model="no such/model")
    assert error.code == "NOT_FOUND"


@pytest.mark.slow
def test_threads_survive_a_killed_server(server):
    """Each of 1,000 sentences from 16 threads gets its own answer."""
    words = islice(product(SOURCE_WORDS, repeat=4), 1000)
    sentences = [" ".join(four) for four in words]
    clients = [connect(server, kind, attempts=50) for kind in ("rest", "grpc")]
    done, some_done = [], threading.Event()

    def ask(place):
        (found,) = clients[place % 2].align([sentences[place]])
        done.append(place)
        if len(done) == 300:
            some_done.set()
        return found

    with ThreadPoolExecutor(16) as threads:
        answers = threads.map(ask, range(1000))
        assert some_done.wait(timeout=300)
        server.kill()
        assert server.process.returncode == -signal.SIGKILL
        before = len(done)
        server.restart()
        answers = list(answers)
    assert 300 <= before < 990
    assert sorted(done) == list(range(1000))
    for sentence, one in zip(sentences, answers, strict=True):
        assert one.source_tokens == sentence.split()
    check(answers, clients[0].align(sentences))
    for client in clients:
        client.close()
