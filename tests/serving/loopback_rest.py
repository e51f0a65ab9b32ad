"""The REST interface of the loopback server."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, model_pb2

from luong_keras.serving.saved_model_session import TensorFlowError
from tests.serving import loopback_json
from tests.serving.loopback_version import INVALID_ARGUMENT, UNIMPLEMENTED

MODEL = r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
PREDICTION = re.compile(MODEL + ":(classify|regress|predict)", re.IGNORECASE)
INFORMATION = re.compile(MODEL + "(/metadata)?", re.IGNORECASE)
INTERNAL = 13
# The runtime's code -> HTTP's, 500 for the others.
HTTP_CODES = {
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
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}


class RestServer(ThreadingHTTPServer):
    """Serves a model at a port of 127.0.0.1, each connection in a thread.

    Args:
        port: 0 for any free one.
        model: the `ServedModel`.
        cors: whether pages of other origins may read the answers.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port, model, cors=False):
        super().__init__(("127.0.0.1", port), RestHandler)
        self.model, self.cors = model, cors


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
        path = urlsplit(self.path).path
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if not path.lower().startswith("/v1/"):
            self.send(404, b"")
            return
        try:
            self.send(200, self.answer(path, body))
        except TensorFlowError as error:
            text = json.dumps({"error": error.message}, indent=4)
            self.send(HTTP_CODES.get(error.code, 500), text.encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = respond

    def answer(self, path, body):
        """The answer's bytes."""
        if self.command == "OPTIONS" and self.headers.get("Origin"):
            # A browser asks whether it may send the request.
            return b""
        if self.command == "POST" and (found := PREDICTION.fullmatch(path)):
            *model, method = found.groups()
            if method.lower() != "predict":
                raise TensorFlowError(
                    UNIMPLEMENTED, "The loopback server can only predict."
                )
            return self.predict(model_spec(*model), body)
        if self.command == "GET" and (found := INFORMATION.fullmatch(path)):
            *model, metadata = found.groups()
            write = self.metadata if metadata else self.status
            return write(model_spec(*model))
        if self.command == "GET" and re.fullmatch("(?i)/v1/models/?", path):
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
        found = version.run(signature, arrays)
        return loopback_json.write(found, in_rows)

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
        return (
            f'{{"model_spec": {written(served)}, '
            f'"metadata": {{"signature_def": {written(signatures)}}}}}'
        ).encode()

    def send(self, code, body):
        """Sends an answer."""
        self.send_response(code)
        headers = {"Content-Type": "application/json"}
        headers |= CORS_HEADERS if self.server.cors else {}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


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
    return json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
