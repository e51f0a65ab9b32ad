"""The REST interface of the loopback server.

Addresses, codes and refusals are those of TensorFlow Serving (http_server.cc
and http_rest_api_handler.cc, 2.20.0); what is no request for a model is
answered by libevent's HTTP server there.
"""

import gzip
import io
import re
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, model_pb2

from tests.serving import loopback_answers, loopback_json
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_version import INVALID_ARGUMENT, UNIMPLEMENTED

MODEL = r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
PREDICTION = re.compile(MODEL + ":(classify|regress|predict)", re.IGNORECASE)
INFORMATION = re.compile(MODEL + "(/metadata)?", re.IGNORECASE)
OK = 0
# What the server unpacks of a body (ZLib::kMaxUncompressedBytes, 2.20.0).
MAX_UNPACKED = 100 * 1024 * 1024
# The runtime's code -> HTTP's, 500 for the others (ToHTTPStatusCode).
HTTP_CODES = {
    OK: 200,
    1: 499,  # cancelled
    INVALID_ARGUMENT: 400,
    4: 504,  # deadline exceeded
    5: 404,  # not found
    6: 409,  # already exists
    7: 403,  # permission denied
    8: 429,  # resource exhausted
    9: 400,  # failed precondition
    10: 409,  # aborted
    11: 400,  # out of range
    UNIMPLEMENTED: 501,
    14: 503,  # unavailable
    16: 401,  # unauthenticated
}
JSON = {"Content-Type": "application/json"}
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}
# What libevent says to an address that nobody serves.
NOT_FOUND_PAGE = b"""<HTML><HEAD>
<TITLE>404 Not Found</TITLE>
</HEAD><BODY>
<H1>Not Found</H1>
</BODY></HTML>
"""


class RestServer(ThreadingHTTPServer):
    """Serves a model at a port of 127.0.0.1, each connection in a thread.

    Args:
        port: 0 for any free one.
        model: the `ServedModel`.
        cors: whether pages of other origins may read the answers.
        metrics_path: where the metrics are, or None for nowhere.
        timeout: milliseconds that a run may take; 0: endless.
        threads: one reads the requests, the others answer one at a time;
            further requests wait for them, which no timeout counts.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        port,
        model,
        cors=False,
        *,
        metrics_path=None,
        timeout=0,
        threads=8,
    ):
        super().__init__(("127.0.0.1", port), RestHandler)
        self.model, self.cors = model, cors
        self.metrics_path, self.prediction_timeout = metrics_path, timeout
        self.answering = threading.Semaphore(max(threads - 1, 1))


class RestHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    # One packet an answer, sent at once.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_):
        """Says nothing."""

    def respond(self):
        """Answers a request of any method."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.server
        # With the query, as the server compares addresses.
        address = urlsplit(self.path)._replace(scheme="", netloc="").geturl()
        with server.answering:
            if urlsplit(self.path).path == server.metrics_path:
                self.send(*metrics_page(server, address))
            elif not address.lower().startswith("/v1/"):
                close = {"Connection": "close", "Content-Type": "text/html"}
                self.send(404, NOT_FOUND_PAGE, close)
            else:
                code, answer, headers = self.process(address, body)
                cors = CORS_HEADERS if server.cors else {}
                self.send(HTTP_CODES.get(code, 500), answer, headers | cors)

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = respond
    do_HEAD = do_PATCH = respond

    def process(self, address, body):
        """Status code, bytes and headers of an answer; counts it."""
        began, names = time.monotonic(), {"model": "", "method": ""}
        headers, code = JSON, OK
        try:
            if self.command == "OPTIONS":
                headers, answer = {}, b""
                code = OK if self.asks_for_a_page() else 9
            else:
                answer = self.answer(address, self.unpacked(body), names)
        except TensorFlowError as error:
            # MakeJsonFromStatus, json_tensor.cc, 2.20.0.
            message = error.message.encode("utf-8", "replace")
            answer = loopback_answers.members(
                {"error": loopback_answers.quoted(message)}, 0
            )
            code = error.code
        latency = (time.monotonic() - began) * 1e6, names["method"], "REST"
        if self.server.model is not None:
            metrics = self.server.model.settings.metrics
            metrics.request(names["model"], code, latency)
        return code, answer, headers

    def asks_for_a_page(self):
        """Whether a browser asks if it may send a request."""
        return re.search("https?://", self.headers.get("Origin", ""))

    def unpacked(self, body):
        """The body of a request; one that is not unpacked is empty."""
        if "gzip" not in self.headers.get("Content-Encoding", ""):
            return body
        try:
            with gzip.open(io.BytesIO(body)) as file:
                found = file.read(MAX_UNPACKED + 1)
        except (EOFError, OSError, zlib.error):
            return b""
        return found if len(found) <= MAX_UNPACKED else b""

    def answer(self, path, body, names):
        """The answer's bytes; `names` gets those of model and method."""
        if self.command == "POST" and (found := PREDICTION.fullmatch(path)):
            *model, method = found.groups()
            spec = model_spec(*model)
            names |= {"model": spec.name, "method": method}
            # In small letters, although the address may have others.
            if method == "predict":
                return self.predict(spec, body)
            if method in ("classify", "regress"):
                raise TensorFlowError(
                    UNIMPLEMENTED, "The loopback server can only predict."
                )
        if self.command == "GET" and (found := INFORMATION.fullmatch(path)):
            *model, metadata = found.groups()
            spec = model_spec(*model)
            names["model"] = spec.name
            write = self.metadata if metadata == "/metadata" else self.status
            return write(spec)
        if self.command == "GET" and re.fullmatch("(?i)/v1/models", path):
            raise TensorFlowError(
                INVALID_ARGUMENT, "Missing model name in request."
            )
        raise TensorFlowError(
            INVALID_ARGUMENT, f"Malformed request: {self.command} {path}"
        )

    def predict(self, spec, body):
        """The answer to a request in row or column format."""
        request = loopback_json.parse(body)
        version = self.server.model.version(spec)
        name = request.get("signature_name") or "serving_default"
        if name not in version.signatures:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f'Serving signature name: "{name}" not found in signature def',
            )
        signature = version.signatures[name]
        arrays, in_rows = loopback_json.read(request, signature.inputs)
        timeout = self.server.prediction_timeout
        found = version.run(signature, arrays, spec.name, timeout=timeout)
        return loopback_answers.write(found, in_rows)

    def status(self, spec):
        """States of the versions."""
        return written(self.server.model.status(spec)).encode()

    def metadata(self, spec):
        """The signatures of a version."""
        version = self.server.model.version(spec)
        served = model_pb2.ModelSpec(name=spec.name)
        served.version.value = version.number
        signatures = get_model_metadata_pb2.SignatureDefMap(
            signature_def=version.signatures
        )
        # ToJsonString, http_rest_api_util.cc, 2.20.0.
        return (
            f'{{\n"model_spec":{written(served)},\n'
            f'"metadata": {{"signature_def": {written(signatures)}}}\n}}\n'
        ).encode()

    def send(self, code, body, headers):
        """Sends an answer."""
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def metrics_page(server, address):
    """Code, bytes and headers of the metrics (ProcessPrometheusRequest)."""
    headers = {"Content-Type": "text/plain"}
    path = server.metrics_path
    if address != path:
        text = f"Unexpected path: {address}. Should be {path}"
        return 400, text.encode(), headers
    return 200, server.model.settings.metrics.page().encode(), headers


def model_spec(name, version, label):
    """What a path asks for."""
    spec = model_pb2.ModelSpec(name=unquote(name))
    if version:
        if int(version) >= 2**63:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Failed to convert version: {version} to numeric.",
            )
        spec.version.value = int(version)
    elif label:
        spec.version_label = unquote(label)
    return spec


def written(message):
    """A proto as JSON, with fields of default values."""
    text = json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
        indent=1,
        ensure_ascii=False,
    )
    return text + "\n"
