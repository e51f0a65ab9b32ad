"""The shipped proxy between clients and a server."""

import inspect
import json
import re
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from luong_keras_client import TranslationClient, TranslationServerError
from tests.serving.proxy_process import (
    EXPORT,
    NEEDS_PROXY,
    OTHER_TOKEN,
    TOKEN,
    ProxyProcess,
    free_port,
    proxy_of,
)
from tests.serving.stub_server import StubHandler, StubServer, running

pytestmark = NEEDS_PROXY
MODEL = "/v1/models/translator"
PREDICT = MODEL + ":predict"
BODY = {"inputs": {"text": ["a cat"]}}
# Limits that tests of other behaviour do not reach.
UNLIMITED = {"rate=20r/s": "rate=10000r/s", "burst=40": "burst=10000"}


class Upstream(StubServer):
    """A stub of the server that records path, headers and body of requests.

    Its responses have `status` and wait for the event `may_answer`.
    """

    def __init__(self):
        self.seen, self.status, self.may_answer = [], 200, threading.Event()
        self.may_answer.set()
        super().__init__(self.Handler)

    class Handler(StubHandler):
        # Like a server with --rest_api_enable_cors_support.
        cors = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Headers": "Content-Type",
        }

        def do_POST(self):
            self.server.seen.append((self.path, self.headers, self.read_body()))
            self.server.may_answer.wait(30)
            answer = b'{"error": "of the server"}'
            self.respond(self.server.status, answer, self.cors)

        do_GET = do_POST


@pytest.fixture(scope="module")
def running_upstream():
    with running(Upstream()) as server:
        yield server


@pytest.fixture
def upstream(running_upstream):
    running_upstream.seen.clear()
    running_upstream.status = 200
    yield running_upstream
    running_upstream.may_answer.set()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory, running_upstream):
    folder = tmp_path_factory.mktemp("proxy")
    port = running_upstream.port
    with ProxyProcess(folder, port, changed=UNLIMITED) as started:
        yield started


def error_of(response, status):
    """Check that a response is a JSON error; return its message."""
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("application/json")
    return response.json()["error"]


def test_token_is_accepted_and_not_passed_on(proxy, upstream):
    requested = MODEL + "/labels/logged:predict"
    assert proxy.post(requested, BODY).status_code == 200
    ((path, headers, body),) = upstream.seen
    assert (path, json.loads(body)) == (requested, BODY)
    assert "Authorization" not in headers
    for _ in range(600):  # it is written after the response
        if requested in proxy.log():
            break
        time.sleep(0.05)
    assert TOKEN not in proxy.log()
    (line,) = [each for each in proxy.log().splitlines() if requested in each]
    logged = json.loads(line)
    assert (logged["client"], logged["path"]) == ("a", requested)
    assert logged["status"] == 200


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        "Bearer",
        f"Bearer {TOKEN[:-1]}c",
        f"Bearer {TOKEN}0",
        TOKEN,
        f"Basic {TOKEN}",
        # The default, a value and a parameter of the map of tokens.
        "default",
        "a",
        "hostnames",
    ],
)
@pytest.mark.parametrize("path", [PREDICT, MODEL, MODEL + "/metadata"])
def test_requests_without_a_valid_token_are_refused(
    proxy, upstream, path, sent
):
    headers = {} if sent is None else {"Authorization": sent}
    response = proxy.post(path, BODY, token=None, headers=headers)
    assert "Bearer TOKEN" in error_of(response, 401)
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert upstream.seen == []


@pytest.mark.parametrize(
    ("method", "path", "received"),
    [
        ("POST", PREDICT, None),
        ("POST", MODEL + "/versions/12:predict", None),
        ("POST", MODEL + "/labels/canary-1:predict", None),
        ("GET", MODEL, None),
        ("GET", MODEL + "/metadata", None),
        ("GET", MODEL + "/versions/2/metadata", None),
        ("GET", MODEL + "/labels/stable", None),
        # Otherwise clients could create metrics of arbitrary names.
        ("POST", "/v1/models/any%2f..%2ftranslator:predict?x=1", PREDICT),
    ],
)
def test_paths_of_the_contract_are_passed_on(
    proxy, upstream, method, path, received
):
    assert proxy.request(method, path).status_code == 200
    assert [seen[0] for seen in upstream.seen] == [received or path]


@pytest.mark.parametrize(
    "path",
    [
        "/monitoring/prometheus/metrics",
        "/v1/models/other:predict",
        "/v1/models",
        "/v1/models/",
        MODEL + ":classify",
        MODEL + ":PREDICT",
        MODEL + "/versions/-1",
        MODEL + "/labels/",
        MODEL + "/../../monitoring/prometheus/metrics",
        "/v1/models/translator%2f..%2f..%2fmonitoring/prometheus/metrics",
        "/v1/models/any%2f..%2f..%2fmodels%2fother:predict",
        "/tensorflow.serving.ModelService/HandleReloadConfigRequest",
        "/tensorflow.serving.PredictionService/Classify",
        "/index.html",
        "/compose.yaml",
        "/../compose.yaml",
        "/.malformed",
        "/demo.js/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_all_other_paths_are_refused(proxy, upstream, method, path):
    # Sent unchanged: a library would normalise the path.
    answer = raw(proxy, f"{method} {path}", "Content-Length: 0")
    assert re.match(rb"HTTP/1.1 40[04] ", answer)
    assert b'{"error": ' in answer
    assert upstream.seen == []


def raw(proxy, request, *headers, body=""):
    """Send a request over TLS, byte for byte, and return the response."""
    lines = f"{request} HTTP/1.1", "Host: x", "Connection: close"
    lines += f"Authorization: Bearer {TOKEN}", *headers, "", body
    return exchange(proxy, "\r\n".join(lines).encode())


def exchange(proxy, sent):
    """Send bytes over TLS and return the response."""
    context = ssl.create_default_context(cafile=proxy.certificate)
    with (
        socket.create_connection(("127.0.0.1", proxy.port), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as channel,
    ):
        channel.sendall(sent)
        return b"".join(iter(lambda: channel.recv(2**16), b""))


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", PREDICT), ("OPTIONS", PREDICT), ("PUT", MODEL), ("POST", MODEL)],
)
def test_other_methods_are_refused(proxy, upstream, method, path):
    response = proxy.request(method, path)
    assert "POST for predictions" in error_of(response, 405)
    assert response.headers["Allow"] == "GET, POST"
    assert upstream.seen == []


def test_plain_http_and_old_tls_are_refused(proxy):
    plain = requests.get(proxy.url.replace("https", "http") + "/", timeout=60)
    assert "https://" in error_of(plain, 400)
    context = ssl.create_default_context(cafile=proxy.certificate)
    context.set_ciphers("ALL:@SECLEVEL=0")  # or the client would refuse first
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", proxy.port), 30) as channel,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(channel, server_hostname="localhost")


@pytest.mark.parametrize(
    "sent",
    [b"GET /\xff%00 HTTP/1.1\r\nHost: x\r\n\r\n", b"nonsense\r\n\r\n"],
)
def test_malformed_http_is_refused_in_json(proxy, sent):
    assert b'{"error": ' in exchange(proxy, sent)


def test_large_bodies_do_not_reach_the_server(proxy, upstream):
    body = b" " * (3 * 2**20)
    assert proxy.request("POST", PREDICT, data=body).status_code == 200
    refused = proxy.request("POST", PREDICT, data=body + b" ")
    assert "3 MB" in error_of(refused, 413)
    # A chunked body, whose length is unknown.
    refused = proxy.request("POST", PREDICT, data=iter([body, b" "]))
    assert "3 MB" in error_of(refused, 413)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "x, y"])
@pytest.mark.parametrize("method, path", [("POST", PREDICT), ("GET", MODEL)])
def test_compressed_bodies_are_refused(proxy, upstream, encoding, method, path):
    # The server would decompress it to 100 MB.
    headers = {"Content-Encoding": encoding}
    refused = proxy.request(method, path, data=b"{}", headers=headers)
    assert "not compressed" in error_of(refused, 415)
    assert upstream.seen == []


@pytest.mark.parametrize("first", ["identity", "Identity", ""])
def test_content_encoding_is_not_passed_on(proxy, upstream, first):
    sent = ["Content-Length: 2", f"Content-Encoding: {first}"]
    assert b" 200 " in raw(proxy, f"POST {PREDICT}", *sent, body="{}")
    sent.append("Content-Encoding: gzip")
    raw(proxy, f"POST {PREDICT}", *sent, body="{}")
    for _, headers, _ in upstream.seen:
        assert "Content-Encoding" not in headers


def test_503_of_the_server_gets_retry_after(proxy, upstream):
    upstream.status = 503
    response = proxy.post(PREDICT, BODY)
    assert error_of(response, 503) == "of the server"
    assert int(response.headers["Retry-After"]) > 0
    upstream.status = 400
    response = proxy.post(PREDICT, BODY)
    assert error_of(response, 400) == "of the server"
    assert "Retry-After" not in response.headers


def test_stopped_server_is_reported_at_once(tmp_path):
    with ProxyProcess(tmp_path, free_port()) as proxy:
        # Every request is tried: the server is not marked as dead.
        for _ in range(3):
            response = proxy.post(PREDICT, BODY)
            assert "cannot be reached" in error_of(response, 503)
            assert int(response.headers["Retry-After"]) > 0
        assert proxy.get("/", token=None).status_code == 200


def test_late_server_is_reported(tmp_path, upstream):
    changed = {"proxy_read_timeout 35s": "proxy_read_timeout 1s"}
    upstream.may_answer.clear()
    with ProxyProcess(tmp_path, upstream.port, changed=changed) as proxy:
        message = error_of(proxy.post(PREDICT, BODY), 504)
        assert "did not answer in time" in message
        assert len(upstream.seen) == 1  # and was not asked twice


def test_request_rate_is_limited_per_client(tmp_path, upstream):
    # So slow that even a slow machine reaches the limit.
    changed = {"rate=20r/s": "rate=1r/m", "burst=40": "burst=2"}
    with ProxyProcess(tmp_path, upstream.port, changed=changed) as proxy:
        found = [proxy.post(PREDICT, BODY) for _ in range(5)]
        assert [each.status_code for each in found] == [200] * 3 + [429] * 2
        assert "Try again" in error_of(found[-1], 429)
        assert int(found[-1].headers["Retry-After"]) > 0
        assert proxy.post(PREDICT, BODY, token=OTHER_TOKEN).status_code == 200
        assert len(upstream.seen) == 4
        # The client names the limit by gRPC.
        url = f"grpcs://localhost:{proxy.port}"
        with (
            TranslationClient(
                url,
                attempts=1,
                token=TOKEN,
                ca_certificate=proxy.certificate,
            ) as client,
            pytest.raises(TranslationServerError, match="overloaded") as caught,
        ):
            client.translate(["a"])
        assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_number_of_connections_is_limited(tmp_path, upstream):
    changed = UNLIMITED | {"client_connections 32": "client_connections 4"}
    upstream.may_answer.clear()
    refusals = threading.Semaphore(0)

    def ask(_):
        code = proxy.post(PREDICT, BODY).status_code
        if code == 429:
            refusals.release()
        return code

    with (
        ProxyProcess(tmp_path, upstream.port, changed=changed) as proxy,
        ThreadPoolExecutor(6) as threads,
    ):
        codes = threads.map(ask, range(6))
        assert all(refusals.acquire(timeout=60) for _ in range(2))
        upstream.may_answer.set()
        assert sorted(codes) == [200] * 4 + [429] * 2


def test_page_is_served_with_strict_headers(proxy, upstream):
    kinds = {"": "html", "demo.js": "javascript", "style.css": "css"}
    for name, kind in kinds.items():
        response = proxy.get("/" + name, token=None)
        file = EXPORT / "demo" / (name or "index.html")
        assert response.content == file.read_bytes()
        headers = response.headers
        assert headers["Content-Type"] == f"text/{kind}; charset=utf-8"
        policy = headers["Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["connect-src"] == rules["script-src"] == "'self'"
        assert rules["frame-ancestors"] == "'none'"
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "max-age" in headers["Strict-Transport-Security"]
    page = (EXPORT / "demo" / "index.html").read_text()
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page):
        assert proxy.get("/" + name, token=None).status_code == 200
    assert upstream.seen == []


def test_other_origins_get_no_cors_headers(proxy, upstream):
    origin = {"Origin": "https://elsewhere.example"}
    for response in (
        proxy.post(PREDICT, BODY, headers=origin),
        proxy.get(MODEL, headers=origin),
        proxy.get("/", token=None, headers=origin),
        proxy.request("OPTIONS", PREDICT, headers=origin, token=None),
    ):
        assert "access-control" not in str(response.headers).lower()


def test_tokens_are_replaced_without_downtime(tmp_path, upstream):
    with ProxyProcess(tmp_path, upstream.port, changed=UNLIMITED) as proxy:
        fresh = "f" * 64
        assert proxy.get(MODEL, token=fresh).status_code == 401
        (tmp_path / "tokens").write_text(f'"Bearer {fresh}" a;\n')
        proxy.reload()
        replaced = 0
        for _ in range(2000):  # the old workers still answer some
            codes = [
                proxy.get(MODEL, token=x).status_code for x in (fresh, TOKEN)
            ]
            replaced = replaced + 1 if codes == [200, 401] else 0
            assert set(codes) <= {200, 401}
            if replaced == 20:
                break
        assert replaced == 20


def test_timeouts_of_proxy_server_and_client_agree():
    text = (EXPORT / "proxy" / "nginx.conf").read_text()
    seconds = {
        name: int(value)
        for name, value in re.findall(r"^ +(\w+_timeout) (\d+)s;", text, re.M)
    }
    compose = (EXPORT / "compose.yaml").read_text()
    (server,) = re.findall(r"--rest_api_timeout_in_ms=(\d+)", compose)
    # The server's response to a late request is passed on.
    assert int(server) / 1000 < seconds["proxy_read_timeout"]
    timeout = inspect.signature(TranslationClient).parameters["timeout"]
    # The proxy must not end a gRPC call before the client does.
    assert timeout.default < seconds["grpc_read_timeout"]
    assert seconds["proxy_connect_timeout"] <= 5


@pytest.fixture(scope="module")
def in_front(tmp_path_factory, server):
    with proxy_of(server, tmp_path_factory.mktemp("front")) as started:
        yield started


def test_server_answers_through_the_proxy(in_front, server):
    path = urlsplit(server.rest_url).path
    status = in_front.get(path).json()
    assert status["model_version_status"][0]["state"] == "AVAILABLE"
    assert "serving_default" in in_front.get(path + "/metadata").text
    found = in_front.post(path + ":predict", BODY).json()
    direct = requests.post(server.rest_url + ":predict", json=BODY, timeout=60)
    assert found["outputs"]["translation"]
    assert found == direct.json()


def grpc_predicted(in_front, server, token, **options):
    """Return the response to a prediction over gRPC."""
    certificate = Path(in_front.certificate).read_bytes()
    both = grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(certificate),
        grpc.access_token_call_credentials(token),
    )
    request = PredictRequest()
    request.model_spec.name = server.rest_url.rpartition("/")[2]
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a cat"]))
    with grpc.secure_channel(f"localhost:{in_front.port}", both) as channel:
        service = PredictionServiceStub(channel)
        return service.Predict(request, timeout=60, **options)


def test_grpc_needs_a_token(in_front, server):
    found = grpc_predicted(in_front, server, TOKEN)
    assert found.outputs["translation"].string_val
    with pytest.raises(grpc.RpcError) as refused:
        grpc_predicted(in_front, server, "x")
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_compressed_grpc_messages_are_refused(in_front, server):
    for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        with pytest.raises(grpc.RpcError) as refused:
            grpc_predicted(in_front, server, TOKEN, compression=compression)
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "not compressed" in refused.value.details()
    none = grpc.Compression.NoCompression
    assert grpc_predicted(in_front, server, TOKEN, compression=none).outputs
