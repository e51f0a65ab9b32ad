"""The client: what it asks, what it makes of answers, when it gives up."""

import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.client.translation_client import (
    TranslationClient,
    TranslationServerError,
)
from tests.serving.tiny_translator import SOURCE_WORDS, tiny_translator

ROOT = Path(__file__).parents[2]
# Two at a time, the shortest first: a batch has no words at all.
LINES = ["the cat sees a zebra .", "", "a Straße .", "", "house", "the " * 12]
TARGETS = ["die Katze", "", "das Haus .", "Hund", "", "sieht zebra"]
of_the_tiny_translator = pytest.mark.skipif(
    "LUONG_KERAS_SERVING_URL" in os.environ,
    reason="the server that was named may serve any translator",
)


# A server, where one is there.


@pytest.fixture(scope="module", params=["rest", "grpc"])
def client(request, server):
    with connect(server, request.param, batch_size=2) as connected:
        yield connected


@pytest.fixture(scope="module")
def translator():
    return tiny_translator()


def connect(server, interface, **settings):
    root, _, name = server.rest_url.partition("/v1/models/")
    url = root if interface == "rest" else f"grpc://{server.grpc_target}"
    return TranslationClient(url, name, **settings)


def check(found, expected):
    """Dataclasses, or lists of them, with equal fields."""
    if isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            check(one, other)
        return
    assert type(found) is type(expected)
    for name, value in vars(expected).items():
        other = getattr(found, name)
        if isinstance(value, np.ndarray):
            assert (other.dtype, other.shape) == (np.float32, value.shape)
        if isinstance(value, np.ndarray | float):
            np.testing.assert_allclose(other, value, rtol=1e-4, atol=1e-5)
        else:
            assert other == value, name


@of_the_tiny_translator
def test_the_answers_are_the_translators(client, translator):
    expected = translator.nbest(LINES)
    check(client.nbest(LINES), expected)
    assert client.translate(LINES) == [nbest[0].text for nbest in expected]
    check(client.score(LINES, TARGETS), translator.score(LINES, TARGETS))
    for line, memory in zip(LINES, client.encode(LINES), strict=True):
        encoded = translator.encode_batch(tf.constant([line]))
        length = int(encoded["lengths"][0])
        expected = encoded["memory"][0, :length]
        assert memory.dtype == np.float32 and memory.shape == expected.shape
        np.testing.assert_allclose(memory, expected, rtol=1e-4, atol=1e-5)


@of_the_tiny_translator
@pytest.mark.parametrize(
    "settings", [{"beam_size": 2}, {"length_penalty": 1.0}]
)
def test_an_option_is_a_setting_of_the_search(client, settings):
    expected = tiny_translator(**settings).nbest(LINES)
    check(client.nbest(LINES, **settings), expected)
    best = [nbest[0].text for nbest in expected]
    assert client.translate(LINES, **settings) == best


def test_each_line_has_its_own_options(client):
    prefixes = ["das", "", "ein Fisch", "", "Hund", "die"]
    options = {"prefix": prefixes, "n_best": [1, 2, 3, 1, 2, 1]}
    found = client.nbest(LINES, **options)
    for place, line in enumerate(LINES):
        own = {name: values[place] for name, values in options.items()}
        check(found[place], client.nbest([line], **own)[0])
        if line:
            assert len(found[place]) == own["n_best"]
            for translation in found[place]:
                assert translation.text.startswith(prefixes[place])


def test_what_is_not_unicode_is_read_as_a_replacement(client):
    lines = ["\udce4 caf\udcff", b"\xe4 caf\xff", "\ufffd caf\ufffd"]
    found = [nbest[0].source_tokens for nbest in client.nbest(lines)]
    assert found == [["\ufffd", "caf\ufffd"]] * 3
    assert client.encode(["Straße".encode(), "Straße"])[0].shape[0] == 1


def test_versions_have_states(server, client):
    (version,) = [v for v, s in client.status().items() if s == "AVAILABLE"]
    url = client.url
    with TranslationClient(url, client.model, version) as pinned:
        assert pinned.translate(LINES) == client.translate(LINES)
    with TranslationClient(url, client.model, version + 1) as absent:
        with pytest.raises(TranslationServerError, match="versions") as caught:
            absent.translate(LINES)
        assert caught.value.code == "NOT_FOUND"


def test_an_unknown_model_is_named(client):
    with (
        TranslationClient(client.url, "no such/model") as other,
        pytest.raises(TranslationServerError, match="no such/model") as caught,
    ):
        other.translate(LINES)
    assert caught.value.code == "NOT_FOUND"


def test_an_answer_may_be_large(client):
    # gRPC refuses more than 4 MB unless told not to.
    large = TranslationClient(client.url, client.model, batch_size=10**4)
    with large:
        found = large.nbest(["the cat sees a dog . the a house"] * 2500)
    check(found[-1], found[0])


@pytest.mark.slow
def test_many_threads_outlive_a_killed_server(server):
    """1,000 sentences of 16 threads, each with the answer of its own."""
    sentences = [
        " ".join(words)
        for words in islice(product(SOURCE_WORDS, repeat=4), 1000)
    ]
    settings = {"timeout": 300, "attempts": 50}
    clients = [connect(server, kind, **settings) for kind in ("rest", "grpc")]
    done, some_done = [], threading.Event()

    def ask(place):
        (found,) = clients[place % 2].nbest([sentences[place]])
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
    for sentence, nbest in zip(sentences, answers, strict=True):
        assert nbest[0].source_tokens == sentence.split()
    together = clients[0].nbest(sentences)
    check(answers, together)
    for client in clients:
        client.close()


# A server that does as it is told.


class ScriptedServer(ThreadingHTTPServer):
    """Answers by its steps, in order; the last one is for all that follow.

    A step is a function of the handler and the request's JSON.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ScriptedHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.steps, self.requests, self.connections = [], [], 0
        self.over = threading.Event()


class ScriptedHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.connections += 1

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        steps, requests = self.server.steps, self.server.requests
        step = steps[min(len(requests), len(steps) - 1)]
        requests.append(request)
        step(self, request)

    def say(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


def says(status, body):
    return lambda handler, request: handler.say(status, body)


def shouts(handler, request):
    """A model whose translations are in capitals."""
    texts = [text.upper() for text in request["inputs"]["text"]]
    outputs = {"translation": texts, "score": [0.0] * len(texts)}
    handler.say(200, json.dumps({"outputs": outputs}).encode())


def breaks_off(handler, request):
    """Ends the connection before the answer's end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"outputs": ')
    handler.close_connection = True


def hangs_up(handler, request):
    handler.close_connection = True


def hangs(handler, request):
    handler.server.over.wait()


def drips(handler, request):
    """A good answer, but a byte at a time."""
    body = b'{"outputs": {"translation": ["A"], "score": [0]}}'
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for place in range(len(body)):
        handler.wfile.write(body[place : place + 1])
        handler.server.over.wait(0.2)


def stops_within(handler, request):
    """The first byte of an answer, late, and nothing more."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.server.over.wait(0.4)
    handler.wfile.write(b"{")
    handler.server.over.wait()


def takes_its_time(handler, request):
    handler.server.over.wait(0.3)
    shouts(handler, request)


@pytest.fixture
def scripted():
    with ScriptedServer() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


def test_batches_have_lines_of_like_length(scripted):
    scripted.steps = [shouts]
    lines = ["ccc", "a", "ffffff", "bb", "eeeee"]
    with TranslationClient(scripted.url, "m", batch_size=2) as client:
        assert client.translate(lines) == [line.upper() for line in lines]
        assert client.translate(iter(["d"])) == ["D"]
    expected = [["a", "bb"], ["ccc", "eeeee"], ["ffffff"], ["d"]]
    assert scripted.requests == [
        {"signature_name": "serving_default", "inputs": {"text": texts}}
        for texts in expected
    ]
    assert scripted.connections == 1


def test_bytes_go_as_base64_and_options_as_agreed(scripted):
    scripted.steps = [says(400, b"{}")]
    client = TranslationClient(scripted.url)
    as_exported = {
        "beam_size": [0],
        "n_best": [0],
        "length_penalty": [-1.0],
        "prefix": [""],
        "replace_unknown": [-1],
    }
    given = {"prefix": "das"}, {"replace_unknown": False}
    for options in given:
        with pytest.raises(TranslationServerError):
            client.nbest([b"\xe4"], **options)
    text = {"text": [{"b64": "5A=="}]}
    assert scripted.requests == [
        {
            "signature_name": "translate_with_options",
            "inputs": {**text, **as_exported, name: [value]},
        }
        for options in given
        for name, value in options.items()
    ]


@pytest.mark.parametrize(
    "failure",
    [
        *(says(status, b"later") for status in (429, 502, 503, 504)),
        hangs_up,
        breaks_off,
    ],
)
def test_what_may_pass_is_asked_again(scripted, failure):
    scripted.steps = [failure, shouts]
    assert TranslationClient(scripted.url).translate(["a"]) == ["A"]
    assert len(scripted.requests) == 2


@pytest.mark.parametrize(
    ("status", "told", "code", "advice"),
    [
        (400, "bad shape", "INVALID_ARGUMENT", "request"),
        (
            400,
            'Serving signature name: "serving_default" not found',
            "INVALID_ARGUMENT",
            "Export the model again",
        ),
        (404, "Servable not found", "NOT_FOUND", "--model_name"),
        (500, "out of memory", "HTTP_500", "log"),
    ],
)
def test_what_stays_wrong_is_asked_once(scripted, status, told, code, advice):
    scripted.steps = [says(status, json.dumps({"error": told}).encode())]
    with pytest.raises(TranslationServerError) as caught:
        TranslationClient(scripted.url, "demo").translate(["a"])
    assert caught.value.code == code
    for part in (scripted.url, "'demo'", told, advice):
        assert part in str(caught.value)
    assert len(scripted.requests) == 1


def test_a_wrong_certificate_is_not_asked_again(scripted):
    url = scripted.url.replace("http://", "https://")
    with pytest.raises(TranslationServerError, match="certificate") as caught:
        TranslationClient(url).status()
    assert caught.value.code == "UNAUTHENTICATED"
    assert scripted.connections == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b'{"predictions": ["A"]}',
        b'{"outputs": {}}',
        b'{"outputs": {"score": [0.0]}}',
        b'{"outputs": {"translation": ["A", "B"], "score": [0, 0]}}',
        b'{"outputs": {"translation": [1], "score": [0]}}',
        b'{"outputs": {"translation": ["A"], "score": ["low"]}}',
        b'{"outputs": {"translation": [["A"]], "score": [0]}}',
    ],
)
def test_another_answer_is_an_error(scripted, body):
    scripted.steps = [says(200, body)]
    with pytest.raises(TranslationServerError, match="TensorFlow") as caught:
        TranslationClient(scripted.url).translate(["a"])
    assert caught.value.code == "MALFORMED"
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("step", [hangs, drips, stops_within, takes_its_time])
def test_a_call_ends_in_time(scripted, step):
    scripted.steps = [step]
    client = TranslationClient(scripted.url, timeout=0.5, batch_size=1)
    with pytest.raises(TranslationServerError, match="timeout") as caught:
        client.translate(["a"] * (3 if step is takes_its_time else 1))
    assert caught.value.code == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("scheme", ["http", "grpc"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attempts": 2}, "refused.*2 attempts.*running"),
        ({"attempts": 1000, "timeout": 1}, "within 1 s.*refused.*running"),
    ],
)
def test_a_server_that_is_not_there(scheme, settings, message):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    with (
        TranslationClient(url, **settings) as client,
        pytest.raises(TranslationServerError, match=message) as caught,
    ):
        client.status()
    assert caught.value.code == "UNAVAILABLE"


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "localhost:8501"},
        {"url": "http://localhost:8501/v1/models/m"},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"attempts": 0},
        {"batch_size": 0},
    ],
)
def test_settings_that_cannot_be(settings):
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match=f"Expected: .*{name}") as caught:
        TranslationClient(**settings)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        (["one sentence"], {}, TypeError, "list"),
        ([["a", None]], {}, TypeError, "None at place 1"),
        ([["a"]], {"beam_size": 2.5}, ValueError, "2.5"),
        ([["a"]], {"beam_size": [1, 2]}, ValueError, "one for each"),
        ([["a"]], {"length_penalty": float("inf")}, ValueError, "inf"),
        ([["a"]], {"beam_size": 2**32 + 3}, ValueError, "int32"),
        ([["a"]], {"beam_size": [[1], [2, 3]]}, ValueError, "one for each"),
        ([["a"]], {"prefix": 3}, TypeError, "prefix"),
        ([["a"]], {"replace_unknown": 0.5}, ValueError, "int32"),
    ],
)
def test_arguments_that_cannot_be(arguments, options, kind, message):
    with pytest.raises(kind, match=f"Expected: .*{message}"):
        TranslationClient(attempts=1).nbest(*arguments, **options)


def test_as_many_targets_as_sources():
    with pytest.raises(ValueError, match="2 and 1"):
        TranslationClient(attempts=1).score(["a"], ["b", "c"])


@pytest.mark.parametrize(
    ("package", "extra"),
    [("requests", "serve"), ("tenacity", "serve"), ("grpcio", "grpc")],
)
def test_the_line_that_installs_is_told(package, extra):
    program = (
        f"import sys; sys.modules[{package.removesuffix('io')!r}] = None\n"
        "from luong_keras import TranslationClient\n"
        "TranslationClient('grpc://localhost:1')\n"
    )
    run = python("-c", program)
    assert f"pip install luong-keras[{extra}]" in run.stderr
    assert f"`{package}`" in run.stderr


# The command line.


def python(*arguments):
    """A process of its own, with this checkout's library."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
    )


@pytest.fixture
def command(server, monkeypatch, capsys):
    """Runs it with arguments and standard input; returns what it prints."""
    root, _, name = server.rest_url.partition("/v1/models/")

    def run(*arguments, lines=()):
        text = "".join(line + "\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        script = str(ROOT / "export" / "client.py")
        command = [script, "--url", root, "--model", name, *arguments]
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_path(script, run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_the_command_needs_neither_tensorflow_nor_keras(server):
    root, _, name = server.rest_url.partition("/v1/models/")
    program = (
        "import runpy, sys\n"
        "sys.modules.update(dict.fromkeys(sys.argv.pop().split('+')))\n"
        "sys.argv.pop(0)\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    script = str(ROOT / "export" / "client.py")
    run = python(
        *("-c", program, script, "--url", root, "--model", name, "--n-best=2"),
        *("Straße", "a cat", "tensorflow+keras+grpc+sacrebleu+matplotlib"),
    )
    assert run.returncode == 0, run.stderr
    with connect(server, "rest") as client:
        expected = [nbest[:2] for nbest in client.nbest(["Straße", "a cat"])]
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert found == [
        [{"text": one.text, "score": one.score} for one in nbest]
        for nbest in expected
    ]


def test_the_command_prints_translations(command, server):
    with connect(server, "rest") as client:
        assert command(lines=LINES) == client.translate(LINES)
        settings = ("--beam-size=2", "--length-penalty=1", "--prefix=das")
        assert command(*settings, lines=LINES) == client.translate(
            LINES, beam_size=2, length_penalty=1, prefix="das"
        )
        (printed,) = command("--alignments", "the cat")
        ((best, *_),) = client.nbest(["the cat"])
    (entry,) = json.loads(printed)
    assert entry == {
        "text": best.text,
        "score": best.score,
        "tokens": best.tokens,
        "source_tokens": best.source_tokens,
        "links": [list(link) for link in best.links],
    }


def test_the_command_scores_and_draws(command, server, tmp_path):
    targets, picture = tmp_path / "targets", tmp_path / "plots" / "first.png"
    targets.write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
    with connect(server, "rest") as client:
        expected = client.score(LINES, TARGETS)
    printed = command(f"--score={targets}", f"--plot={picture}", lines=LINES)
    np.testing.assert_allclose(
        [float(line) for line in printed],
        [scored.log_probability for scored in expected],
        atol=1e-5,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    assert len(command(f"--plot={picture}", "the cat")) == 1
    assert picture.exists()


def test_the_command_ends_with_the_error(command, tmp_path):
    (tmp_path / "targets").write_text("die Katze\n")
    for arguments, message in (
        (["--version=999", "a cat"], "--model_name"),
        ([f"--score={tmp_path / 'targets'}", "a", "b"], "2 lines in"),
        ([f"--score={tmp_path / 'none'}", "a"], "none"),
    ):
        with pytest.raises(SystemExit, match=f"error: .*{message}"):
            command(*arguments)
