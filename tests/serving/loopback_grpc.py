"""The gRPC interface of the loopback server.

Codes, refusals and deadlines are those of TensorFlow Serving
(prediction_service_impl.cc and grpc_status_util.cc, 2.20.0).
"""

import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_version import INVALID_ARGUMENT

CODES = {code.value[0]: code for code in grpc.StatusCode}
MESSAGE_LIMIT = 1024


def answering(answer):
    """A method of a service, whose errors become gRPC's."""

    @functools.wraps(answer)
    def method(self, request, context):
        # gRPC's C++ server has a thread for each call and one that reads;
        # a call more is refused at once (thread_manager.cc, server_cc.cc).
        if not self.free.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "Server Threadpool Exhausted",
            )
        try:
            return answer(self, request, context)
        except TensorFlowError as error:
            context.abort(CODES[error.code], shortened(error.message))
        finally:
            self.free.release()

    return method


def shortened(message):
    """A refusal as it is sent (ToGRPCStatus)."""
    if len(message.encode()) <= MESSAGE_LIMIT:
        return message
    start = message.encode()[:MESSAGE_LIMIT].decode("utf-8", "ignore")
    return f"{start}...TRUNCATED"


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predictions and signatures of one model."""

    def __init__(self, model, free):
        self.model, self.free = model, free

    @answering
    def Predict(self, request, context):
        name, code, began = request.model_spec.name, 0, time.monotonic()
        try:
            return self.predict(request, context)
        except TensorFlowError as error:
            code = error.code
            raise
        finally:
            latency = (time.monotonic() - began) * 1e6, "Predict", "GRPC"
            self.model.settings.metrics.request(name, code, latency)

    def predict(self, request, context):
        """The answer, if the client's deadline leaves time for it.

        A deadline that has passed is none, and a client that has gone is not
        noticed (DeadlineToTimeoutMillis, prediction_service_util.cc, 2.20.0).
        """
        if not request.HasField("model_spec"):
            raise TensorFlowError(INVALID_ARGUMENT, "Missing ModelSpec")
        version = self.model.version(request.model_spec)
        left = context.time_remaining()
        return version.predict(
            request, 0 if left is None else int(min(left, 2e6) * 1000)
        )

    @answering
    def GetModelMetadata(self, request, _):
        if not request.HasField("model_spec"):
            raise TensorFlowError(INVALID_ARGUMENT, "Missing ModelSpec")
        if not request.metadata_field:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                "GetModelMetadataRequest must specify at least one "
                "metadata_field",
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise TensorFlowError(
                    INVALID_ARGUMENT, f"Metadata field {field} is not supported"
                )
        version = self.model.version(request.model_spec)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number
        response.metadata["signature_def"].Pack(
            get_model_metadata_pb2.SignatureDefMap(
                signature_def=version.signatures
            )
        )
        return response


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """States of one model's versions."""

    def __init__(self, model, free):
        self.model, self.free = model, free

    @answering
    def GetModelStatus(self, request, _):
        if not request.HasField("model_spec"):
            raise TensorFlowError(INVALID_ARGUMENT, "Missing ModelSpec")
        return self.model.status(request.model_spec)


def grpc_server(port, model, threads):
    """A server of both services, not yet started, and its port.

    Args:
        port: 0 for any free one.
        model: the `ServedModel`.
        threads: one reads the calls, the others answer one at a time.
    """
    server = grpc.server(
        # Some more, which refuse what is too much.
        ThreadPoolExecutor(threads + 8),
        options=[
            ("grpc.max_receive_message_length", -1),
            # Another server's port is an error.
            ("grpc.so_reuseport", 0),
        ],
    )
    free = threading.Semaphore(max(threads - 1, 1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(model, free), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(
        ModelService(model, free), server
    )
    return server, server.add_insecure_port(f"127.0.0.1:{port}")
