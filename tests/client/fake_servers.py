"""Fake servers that follow the contract and fail on request.

They follow docs/serving_contract.md and TensorFlow Serving's source, and share
no code with the client.
"""

import base64
import json
import queue
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)
from tensorflow_serving.apis import model_service_pb2_grpc as model_service

from tests.serving.stub_server import StubHandler, StubServer, running

LIMITS = {
    "version": 3,
    "max_rows": 64,
    "max_text_bytes": 1000,
    "max_source_tokens": 50,
    "max_beam_size": 10,
    "n_best": 3,
}
# gRPC codes to HTTP statuses, as in TensorFlow Serving's http_server.cc.
HTTP = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Refusal(Exception):
    """Error that a server answers: a gRPC code or an HTTP status."""

    def __init__(self, code, message="no", **headers):
        super().__init__(code, message)
        self.code, self.message, self.headers = code, message, headers

    def __call__(self, signature, rows):
        raise self


def shout(signature, rows):
    """Answer requests of any signature with their texts in capitals."""
    capitals = [_capitals(row.get("text", row.get("source"))) for row in rows]
    if signature == "serving_default":
        return [output_row(translation=text, score=-1.0) for text in capitals]
    if signature == "translate":
        return [output_row(translations=[t], scores=[-1.0]) for t in capitals]
    if signature in ("translate_with_options", "search"):
        counts = [row["n_best"] or 2 for row in rows]
        return [
            output_row(translations=[text, "x"][:n], scores=[-1.0, -2.0][:n])
            for text, n in zip(capitals, counts, strict=True)
        ]
    if signature == "encode":
        return [output_row(memory=[[0.0]], lengths=1) for _ in capitals]
    raise Refusal("INVALID_ARGUMENT", f'name: "{signature}" not found')


def _capitals(text):
    if isinstance(text, dict):
        text = base64.b64decode(text["b64"]).decode()
    return text.upper()


def output_row(**outputs):
    return {"truncated": False, "status": "OK", **outputs}


def shout_with(changes):
    """Return a step like `shout` whose rows have `changes(text)` as well."""

    def step(signature, rows):
        return [
            outputs | changes(row["text"])
            for outputs, row in zip(shout(signature, rows), rows, strict=True)
        ]

    return step


def refuse_longer_than(size):
    """Return a step that refuses texts of more than `size` bytes."""
    refused = {"status": "TEXT_TOO_LONG"}
    return shout_with(lambda text: refused if len(text.encode()) > size else {})


def shout_together(count):
    """Return a step that waits until `count` requests are in flight."""
    together = threading.Barrier(count, timeout=30)

    def step(signature, rows):
        together.wait()
        return shout(signature, rows)

    return step


class FakeModel:
    """Model of a fake server, which records its requests.

    Attributes:
        answer: Function that answers requests when `steps` is empty.
        steps: Functions that answer the next requests, each used once.
        requests: Signature and rows of each request except for `contract`.
        contract_calls: Number of requests for the contract.
        metadata: Headers of each request, by names in lower case.
        filters: Names of the outputs that each gRPC request selects.
        stopped: Event that is set when the server stops.
    """

    def __init__(self):
        self.answer, self.limits = shout, dict(LIMITS)
        self.steps, self.requests, self.filters = deque(), [], []
        self.contract_calls, self.metadata = 0, []
        self.tokens = None
        self.stopped = threading.Event()
        self.lock = threading.Lock()

    def rows(self, signature, rows, metadata):
        with self.lock:
            self.metadata.append(metadata)
            if self.tokens and metadata.get("authorization") not in self.tokens:
                message = f"not allowed: {metadata.get('authorization')}"
                raise Refusal("UNAUTHENTICATED", message)
            if signature == "contract":
                self.contract_calls += 1
                if self.limits is None:
                    name = 'Serving signature name: "contract" not found'
                    raise Refusal("INVALID_ARGUMENT", name)
                return [self.limits] * len(rows)
            self.requests.append((signature, rows))
            step = self.steps.popleft() if self.steps else self.answer
        found = step(signature, rows)
        for row in found if isinstance(found, list) else []:
            if "translations" in row and "truncated" in row:
                cut = [row["truncated"]] * len(row["translations"])
                row.setdefault("truncations", cut)
        return found

    def sleep(self, seconds):
        def step(signature, rows):
            self.stopped.wait(seconds)
            return shout(signature, rows)

        return step

    def count_in_flight(self, seconds):
        """Answer after a delay, and record how many requests are in flight."""
        in_flight, counts = [], []

        def answer(signature, rows):
            in_flight.append(1)
            counts.append(len(in_flight))
            self.stopped.wait(seconds)
            in_flight.pop()
            return shout(signature, rows)

        self.answer = answer
        return counts

    @property
    def texts(self):
        return [[row["text"] for row in rows] for _, rows in self.requests]


class Handler(StubHandler):
    def setup(self):
        super().setup()
        self.server.connections += 1

    def finish(self):
        super().finish()
        self.server.hung_up.put(self)

    def do_POST(self):
        body = self.read_body()
        self.server.bodies.append((self.path, body.decode()))
        body = json.loads(body)
        headers = {k.lower(): v for k, v in self.headers.items()}
        try:
            answer = self.server.model.rows(
                body["signature_name"], body["instances"], headers
            )
        except Refusal as refusal:
            status = HTTP.get(refusal.code, refusal.code)
            text = json.dumps({"error": refusal.message}).encode()
            items = refusal.headers.items()
            headers = {name.replace("_", "-"): value for name, value in items}
            self.respond(status, text, headers)
            return
        if callable(answer):
            answer(self)
        else:
            self.respond(200, json.dumps({"predictions": answer}).encode())

    def do_GET(self):
        self.server.bodies.append((self.path, ""))
        states = [("3", "AVAILABLE"), ("12", "UNLOADING")]
        body = [{"version": v, "state": s, "status": {}} for v, s in states]
        self.respond(200, json.dumps({"model_version_status": body}).encode())


class RestServer(StubServer):
    def __init__(self, model):
        super().__init__(Handler)
        self.model, self.bodies, self.connections = model, [], 0
        self.hung_up = queue.SimpleQueue()

    def handle_error(self, *_):
        """Ignore clients that hang up."""


class GrpcService(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service.ModelServiceServicer,
):
    def __init__(self, model):
        self.model, self.specs = model, []

    def Predict(self, request, context):  # noqa: N802
        self.specs.append(request.model_spec)
        columns = {
            name: tf.make_ndarray(tensor).tolist()
            for name, tensor in request.inputs.items()
        }
        rows = [
            {
                name: value.decode() if isinstance(value, bytes) else value
                for name, value in zip(columns, row, strict=True)
            }
            for row in zip(*columns.values(), strict=True)
        ]
        metadata = dict(context.invocation_metadata())
        self.model.filters.append(list(request.output_filter))
        name = request.model_spec.signature_name
        try:
            answer = self.model.rows(name, rows, metadata)
        except Refusal as refusal:
            if refusal.headers:
                context.set_trailing_metadata(tuple(refusal.headers.items()))
            code = getattr(grpc.StatusCode, refusal.code)
            context.abort(code, refusal.message)
        response = predict_pb2.PredictResponse()
        for output in answer[0]:
            if output in request.output_filter or not request.output_filter:
                tensor = _tensor([row[output] for row in answer])
                response.outputs[output].CopyFrom(tensor)
        return response

    def GetModelStatus(self, request, context):  # noqa: N802
        self.specs.append(request.model_spec)
        response = get_model_status_pb2.GetModelStatusResponse()
        for number, state in ((3, 30), (12, 40)):
            response.model_version_status.add(version=number, state=state)
        return response


def _tensor(values):
    array = np.array(values)
    dtype = {"f": "float32", "i": "int32"}.get(array.dtype.kind, array.dtype)
    return tf.make_tensor_proto(array.astype(dtype))


@contextmanager
def rest_server(model, context=None):
    """Serve a model by REST, with TLS if `context` is given."""
    server, scheme = RestServer(model), "http"
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        scheme = "https"
    server.url = f"{scheme}://127.0.0.1:{server.port}"
    with running(server):
        try:
            yield server
        finally:
            model.stopped.set()


@contextmanager
def grpc_server(model, credentials=None):
    """Serve a model by gRPC, with TLS if `credentials` are given."""
    service = GrpcService(model)
    server = grpc.server(ThreadPoolExecutor(8))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        service, server
    )
    model_service.add_ModelServiceServicer_to_server(service, server)
    if credentials is None:
        port, scheme = server.add_insecure_port("127.0.0.1:0"), "grpc"
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
        scheme = "grpcs"
    service.url = f"{scheme}://127.0.0.1:{port}"
    server.start()
    try:
        yield service
    finally:
        model.stopped.set()
        server.stop(None).wait()
