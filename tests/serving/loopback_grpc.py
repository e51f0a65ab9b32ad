"""The gRPC interface of the loopback server.

Codes and messages are those of TensorFlow Serving
(prediction_service_impl.cc and grpc_status_util.cc, 2.20.0).
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import grpc
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from tests.serving.loopback_error import TensorFlowError

CODES = {code.value[0]: code for code in grpc.StatusCode}
# More than the clients of any test or benchmark.
THREADS = 256


def answering(answer):
    """Wrap a method of a service: its errors become errors of gRPC."""

    @functools.wraps(answer)
    def method(self, request, context):
        try:
            return answer(self, request)
        except TensorFlowError as error:
            context.abort(CODES[error.code], error.message)

    return method


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predictions of one model."""

    def __init__(self, model):
        self.model = model

    @answering
    def Predict(self, request):
        return self.model.version(request.model_spec).predict(request)


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """States of one model's versions."""

    def __init__(self, model):
        self.model = model

    @answering
    def GetModelStatus(self, request):
        return self.model.status(request.model_spec)


def grpc_server(port, model):
    """Create a server of both services; return it, not started, and its port.

    Args:
        port: The port, or 0 for any free one.
        model: The `ServedModel`.
    """
    server = grpc.server(
        ThreadPoolExecutor(THREADS),
        options=[
            ("grpc.max_receive_message_length", -1),
            # A port that another server uses is an error.
            ("grpc.so_reuseport", 0),
        ],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(model), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(
        ModelService(model), server
    )
    return server, server.add_insecure_port(f"127.0.0.1:{port}")
