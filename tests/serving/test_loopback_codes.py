"""Codes, headers and counters of the double's two interfaces."""

import gzip
import threading
from types import SimpleNamespace

import grpc
import pytest
import requests
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_grpc import grpc_server
from tests.serving.loopback_metrics import Metrics, Sampler
from tests.serving.loopback_rest import RestServer
from tests.serving.loopback_version import Settings

SECONDS = 60
METRICS_PATH = "/monitoring/prometheus/metrics"


class Refusing:
    """A `ServedModel` that answers with an error.

    Attributes:
        error: the error.
        may_answer: requests wait for it.
        asked: counts the requests.
    """

    def __init__(self):
        self.settings = Settings(metrics=Metrics())
        self.error, self.may_answer = TensorFlowError(5, "?"), threading.Event()
        self.asked = threading.Semaphore(0)
        self.may_answer.set()

    def version(self, _):
        self.asked.release()
        assert self.may_answer.wait(timeout=SECONDS)
        raise self.error

    status = version


@pytest.fixture
def refusing():
    """Both interfaces of a `Refusing` model, with two threads each."""
    model = Refusing()
    rest = RestServer(0, model, metrics_path=METRICS_PATH, threads=2)
    threading.Thread(
        target=rest.serve_forever, args=(0.01,), daemon=True
    ).start()
    calls, port = grpc_server(0, model, 2)
    calls.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    yield SimpleNamespace(
        model=model,
        url=f"http://127.0.0.1:{rest.server_address[1]}",
        stub=prediction_service_pb2_grpc.PredictionServiceStub(channel),
    )
    channel.close()
    calls.stop(grace=None).wait()
    rest.shutdown()
    rest.server_close()


def ask(refusing, method="POST", path="/v1/models/x:predict", **arguments):
    arguments = {"data": b'{"instances": [1]}', **arguments}
    return requests.request(
        method, refusing.url + path, timeout=SECONDS, **arguments
    )


def call(refusing):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "x"
    with pytest.raises(grpc.RpcError) as error:
        refusing.stub.Predict(request, timeout=SECONDS)
    return error.value.code(), error.value.details()


def lines(refusing, name):
    """Numbers of a metric, without the buckets."""
    page = requests.get(refusing.url + METRICS_PATH, timeout=SECONDS)
    assert page.headers["Content-Type"] == "text/plain"
    return [line for line in page.text.splitlines() if line.startswith(name)]


@pytest.mark.parametrize(
    "code, name, expected",
    [
        (1, "CANCELLED", 499),
        (2, "UNKNOWN", 500),
        (3, "INVALID_ARGUMENT", 400),
        (4, "DEADLINE_EXCEEDED", 504),
        (5, "NOT_FOUND", 404),
        (6, "ALREADY_EXISTS", 409),
        (7, "PERMISSION_DENIED", 403),
        (8, "RESOURCE_EXHAUSTED", 429),
        (9, "FAILED_PRECONDITION", 400),
        (10, "ABORTED", 409),
        (11, "OUT_OF_RANGE", 400),
        (12, "UNIMPLEMENTED", 501),
        (13, "INTERNAL", 500),
        (14, "UNAVAILABLE", 503),
        (15, "DATA_LOSS", 500),
        (16, "UNAUTHENTICATED", 401),
    ],
)
def test_each_status_has_its_codes(refusing, code, name, expected):
    refusing.model.error = TensorFlowError(code, 'no "x"\n')
    response = ask(refusing)
    assert response.status_code == expected
    assert response.content == b'{\n    "error": "no \\"x\\"\\n"\n}'
    assert response.headers["Content-Type"] == "application/json"
    assert "Retry-After" not in response.headers
    assert call(refusing) == (grpc.StatusCode[name], 'no "x"\n')
    count = ":tensorflow:serving:request_count"
    assert lines(refusing, count) == [
        f'{count}{{model_name="x",status="{name}"}} 2'
    ]
    # Only of what succeeds.
    assert not lines(refusing, ":tensorflow:serving:request_latency")


def test_grpc_sends_the_beginning_of_a_long_refusal(refusing):
    refusing.model.error = TensorFlowError(3, "e" * 1025)
    assert call(refusing)[1] == "e" * 1024 + "...TRUNCATED"
    assert ask(refusing).json() == {"error": "e" * 1025}


def test_rest_lets_wait_and_grpc_refuses_what_no_thread_is_free_for(refusing):
    refusing.model.may_answer.clear()
    answers = []
    workers = [
        threading.Thread(target=lambda: answers.append(ask(refusing)))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    assert refusing.model.asked.acquire(timeout=SECONDS)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "x"
    first = refusing.stub.Predict.future(request, timeout=SECONDS)
    assert refusing.model.asked.acquire(timeout=SECONDS)
    assert call(refusing) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "Server Threadpool Exhausted",
    )
    # The other one by REST has not got as far.
    assert not refusing.model.asked.acquire(blocking=False)
    refusing.model.may_answer.set()
    for worker in workers:
        worker.join()
    assert [answer.status_code for answer in answers] == [404, 404]
    assert first.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    "method, path, words",
    [
        ("POST", "/v1/models/x:predict?a=b", True),
        ("POST", "/v1/models/x:PREDICT", True),
        ("PUT", "/v1/models/x:predict", True),
        ("POST", "/v1/models/x", True),
        ("GET", "/v1/models/", True),
        ("GET", "/v1/models", "Missing model name in request."),
    ],
)
def test_other_requests_are_malformed(refusing, method, path, words):
    response = ask(refusing, method, path)
    if words is True:
        words = f"Malformed request: {method} {path}"
    assert (response.status_code, response.json()) == (400, {"error": words})


def test_other_addresses_are_those_of_nobody(refusing):
    response = ask(refusing, "GET", "/")
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "text/html"
    assert response.headers["Connection"] == "close"
    assert b"<H1>Not Found</H1>" in response.content
    response = ask(refusing, "GET", METRICS_PATH + "?a=b")
    assert (response.status_code, response.text) == (
        400,
        f"Unexpected path: {METRICS_PATH}?a=b. Should be {METRICS_PATH}",
    )


def test_only_pages_ask_for_options(refusing):
    response = ask(refusing, "OPTIONS")
    assert (response.status_code, response.content) == (400, b"")
    page = {"Origin": "https://localhost"}
    response = ask(refusing, "OPTIONS", headers=page)
    assert (response.status_code, response.content) == (200, b"")
    assert ask(refusing, "HEAD").content == b""


def test_bodies_may_be_packed(refusing):
    packed = {"Content-Encoding": "gzip"}
    body = gzip.compress(b'{"instances": [1]}')
    assert ask(refusing, data=body, headers=packed).status_code == 404
    large = gzip.compress(b" " * (100 * 2**20 - 20) + b'{"instances": [1]}', 1)
    assert ask(refusing, data=large, headers=packed).status_code == 404
    too_large = gzip.compress(b" " * 100 * 2**20 + b'{"instances": [1]}', 1)
    for data in (b"nothing", too_large):
        response = ask(refusing, data=data, headers=packed)
        assert response.json() == {
            "error": "JSON Parse error: The document is empty"
        }


def test_histograms_count_what_is_below_their_limits():
    metric = Sampler(":a:b", "x", "y", scale=10, growth=1.8, count=3)
    for value in (9, 10, 32.5):
        metric.add(value, 'q"', "\\")
    labels = 'x="q\\"",y="\\\\"'
    assert list(metric.lines()) == [
        "# TYPE :a:b histogram",
        f':a:b_bucket{{{labels},le="10"}} 1',
        f':a:b_bucket{{{labels},le="18"}} 2',
        f':a:b_bucket{{{labels},le="32.4"}} 2',
        f':a:b_bucket{{{labels},le="+Inf"}} 3',
        f":a:b_sum{{{labels}}} 51.5",
        f":a:b_count{{{labels}}} 3",
    ]
