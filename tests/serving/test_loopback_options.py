"""The double as a server with batches, delays and the shipped settings."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf

from tests.serving import loopback_server
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_model import ServedModel
from tests.serving.loopback_rest import RestServer
from tests.serving.loopback_session import SlowSession
from tests.serving.loopback_version import Settings
from tests.serving.server_calls import Grpc, get, post
from tests.serving.server_process import LoopbackProcess
from tests.serving.test_loopback_server import pytestmark as pytestmark

EXPORT = Path(__file__).parents[2] / "export"
METRICS = "/monitoring/prometheus/metrics"
BATCHES = """
max_batch_size { value: 3 }
batch_timeout_micros { value: 100000000 }
max_enqueued_batches { value: 1 }
"""


class Teller(tf.Module):
    """Gives back its numbers, and how many rows ran together."""

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float32, "numbers")]
    )
    def __call__(self, numbers):
        rows = tf.shape(numbers)[0]
        return {"numbers": numbers, "rows": tf.repeat(rows, rows)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    tf.saved_model.save(Teller(), str(folder / "translator" / "1"))
    (folder / "batching.config").write_text(BATCHES)
    return folder


@pytest.fixture(scope="module")
def double(models):
    """With batches of 3 rows, which wait until they are full."""
    running = LoopbackProcess(
        models / "translator",
        "--enable-batching",
        *("--batching-parameters-file", str(models / "batching.config")),
        *("--config", str(EXPORT / "models.config")),
        *("--monitoring-config-file", str(EXPORT / "monitoring.config")),
        *("--slow", "0.05"),
    )
    yield running
    running.stop()


def ask(double, rows):
    return post(f"{double.rest_url}:predict", {"instances": rows})


def metrics(double):
    base = double.rest_url.partition("/v1/")[0]
    page = requests.get(base + METRICS, timeout=60)
    assert page.status_code == 200
    return dict(
        line.rsplit(" ", 1)
        for line in page.text.splitlines()
        if not line.startswith("#")
    )


def test_requests_of_both_interfaces_run_together(double):
    with ThreadPoolExecutor(2) as threads, Grpc(double) as calls:
        one = threads.submit(ask, double, [[1.0]])
        other = threads.submit(ask, double, [[2.0]])
        answer, found = calls.predict(calls.request(numbers=[[3.5]]))
        assert answer.model_spec.version.value == 1
        assert (found["numbers"].tolist(), found["rows"]) == ([[3.5]], [3])
        for number, asked in ((1.0, one), (2.0, other)):
            assert asked.result() == (
                200,
                {"predictions": [{"numbers": [number], "rows": 3}]},
            )
    found = metrics(double)
    serving = ":tensorflow:serving:"
    labels = 'model_name="translator",status="OK"'
    assert int(found[f"{serving}request_count{{{labels}}}"]) >= 3
    for labels in (
        'model_name="translator",API="predict",entrypoint="REST"',
        'model_name="translator",API="Predict",entrypoint="GRPC"',
    ):
        assert int(found[f"{serving}request_latency_count{{{labels}}}"]) >= 1
    labels = 'model_name="translator",API="Predict",runtime="TF1"'
    # In microseconds.
    assert float(found[f"{serving}runtime_latency_sum{{{labels}}}"]) > 50_000


def test_one_of_another_shape_fails_the_others_of_its_batch(double):
    with ThreadPoolExecutor(3) as threads:
        asked = [
            threads.submit(ask, double, [row])
            for row in ([1.0], [1.0, 2.0], [3.0])
        ]
        answers = [each.result() for each in asked]
    assert answers[0] == answers[1] == answers[2]
    code, answer = answers[0]
    assert code == 400
    assert answer["error"].startswith("Tensors with name 'serving_default_")
    assert "' from different tasks have different shapes" in answer["error"]


def test_what_is_too_much_is_refused(double):
    assert ask(double, [[1.0]] * 4) == (
        400,
        {"error": "Task size 4 is larger than maximum input batch size 3"},
    )
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, double, [[1.0]])
        # Until it waits, three rows are a batch of their own.
        while (answer := ask(double, [[1.0]] * 3))[0] == 200:
            if waiting.done():  # It was what was too much.
                assert waiting.result()[0] == 503
                waiting = threads.submit(ask, double, [[1.0]])
        assert answer == (
            503,
            {
                "error": "The batch scheduling queue to which this task was "
                "submitted is full; currently 1 batches enqueued and "
                "max_enqueued_batches is 1"
            },
        )
        assert ask(double, [[2.0]] * 2)[0] == 200
        assert waiting.result()[0] == 200


def test_a_call_has_no_more_time_than_its_client(double):
    with Grpc(double) as calls:
        request = calls.request(numbers=[[1.0]] * 3)
        with pytest.raises(grpc.RpcError) as error:
            calls.predictions.Predict(request, timeout=0.04)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.fixture
def slow(models):
    """A model that takes long, and a way to serve it."""
    model = ServedModel(
        "translator", models / "translator", settings=Settings(slow=0.2)
    )
    model.poll()
    servers = []

    def serve(timeout):
        servers.append(RestServer(0, model, timeout=timeout))
        threading.Thread(
            target=servers[-1].serve_forever, args=(0.01,), daemon=True
        ).start()
        port = servers[-1].server_address[1]
        return f"http://127.0.0.1:{port}/v1/models/translator"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_run_by_rest_ends_at_its_timeout(slow):
    body = {"inputs": [[1.0]]}
    assert post(slow(50) + ":predict", body) == (
        504,
        {"error": "Timed out waiting for notification"},
    )
    for timeout in (0, 60_000):
        code, answer = post(slow(timeout) + ":predict", body)
        assert (code, answer["outputs"]["rows"]) == (200, [1])


class Endless(tf.Module):
    """Counts for days."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "start")])
    def __call__(self, start):
        (end,) = tf.while_loop(lambda i: i < 10**15, lambda i: [i + 1], [start])
        return {"end": end}


def test_the_runtime_gives_up_a_call_that_takes_too_long(tmp_path):
    tf.saved_model.save(Endless(), str(tmp_path))
    session = SlowSession(tmp_path)
    call = {"serving_default_start:0": np.array(1)}
    with pytest.raises(TensorFlowError) as error:
        session.run(call, {"end": "PartitionedCall:0"}, 100)
    assert (error.value.code, error.value.message) == (
        4,
        "Timed out waiting for notification",
    )
    session.close()


def test_the_shipped_settings_can_be_read():
    arguments = loopback_server.parser().parse_args(
        ["--base-path", "x", "--name", "translator", "--enable-batching"]
        + ["--batching-parameters-file", str(EXPORT / "batching.config")]
    )
    assert loopback_server.settings(arguments).batching is not None
    monitoring = EXPORT / "monitoring.config"
    assert loopback_server.read_metrics_path(monitoring) == METRICS
    assert loopback_server.read_metrics_path(None) is None


def test_batches_must_be_asked_for(monkeypatch):
    command = ["server", "--base-path", "x", "--name", "x"]
    monkeypatch.setattr(
        "sys.argv", [*command, "--batching-parameters-file", "y"]
    )
    with pytest.raises(SystemExit, match="is set without setting"):
        loopback_server.main()


def test_a_status_has_no_method(double):
    assert get(double.rest_url)[0] == 200
    labels = 'model_name="translator",API="",entrypoint="REST"'
    assert f":tensorflow:serving:request_latency_count{{{labels}}}" in (
        metrics(double)
    )
