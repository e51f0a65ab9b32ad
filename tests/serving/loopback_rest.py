"""The REST interface of the loopback server.

Paths and codes are those of TensorFlow Serving (http_server.cc and
http_rest_api_handler.cc, 2.20.0).
"""

import json
import re
from urllib.parse import unquote

from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, model_pb2

from tests.serving import loopback_json
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_json import INVALID_ARGUMENT
from tests.serving.stub_server import StubHandler, StubServer

MODEL = r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
PREDICTION = re.compile(MODEL + ":predict")
INFORMATION = re.compile(MODEL + "(/metadata)?")
# Code of TensorFlow -> status of HTTP, 500 if absent (ToHTTPStatusCode).
HTTP_CODES = {
    INVALID_ARGUMENT: 400,
    5: 404,  # not found
    9: 400,  # failed precondition
    14: 503,  # unavailable
}


class RestServer(StubServer):
    """A server of a model.

    Args:
        port: The port, or 0 for any free one.
        model: The `ServedModel`.
    """

    def __init__(self, port, model):
        super().__init__(RestHandler, port)
        self.model = model


class RestHandler(StubHandler):
    """The requests of one connection."""

    def do_GET(self):
        body, code = self.read_body(), 200
        try:
            answer = self.answer(self.path, body)
        except TensorFlowError as error:
            answer = json.dumps({"error": error.message}).encode()
            code = HTTP_CODES.get(error.code, 500)
        self.respond(code, answer)

    do_POST = do_GET

    def answer(self, path, body):
        if self.command == "POST" and (found := PREDICTION.fullmatch(path)):
            return self.predict(model_spec(*found.groups()), body)
        if self.command == "GET" and (found := INFORMATION.fullmatch(path)):
            *model, metadata = found.groups()
            write = self.metadata if metadata else self.status
            return write(model_spec(*model))
        message = f"Malformed request: {self.command} {path}"
        raise TensorFlowError(INVALID_ARGUMENT, message)

    def predict(self, spec, body):
        """Return the response to a request in row or column format."""
        version = self.server.model.version(spec)
        signatures = version.signatures
        signature, arrays, in_rows = loopback_json.read(body, signatures)
        found = version.run(signature, arrays)
        return self.server.model.settings.write(found, in_rows)

    def status(self, spec):
        """Return the states of the versions."""
        return written(self.server.model.status(spec)).encode()

    def metadata(self, spec):
        """Return the signatures of a version."""
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


def model_spec(name, version, label):
    """Create the `ModelSpec` of a path."""
    spec = model_pb2.ModelSpec(name=unquote(name))
    if version:
        spec.version.value = int(version)
    elif label:
        spec.version_label = unquote(label)
    return spec


def written(message):
    """Return a proto as JSON, including fields with default values."""
    text = json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
        indent=1,
        ensure_ascii=False,
    )
    return text + "\n"
