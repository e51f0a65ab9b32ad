"""The gRPC interface of the loopback server.

Codes and refusals are those of TensorFlow Serving
(prediction_service_impl.cc and grpc_status_util.cc, 2.20.0).
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from tests.serving.loopback_error import TensorFlowError

CODES = {code.value[0]: code for code in grpc.StatusCode}
# More than any test or benchmark has clients.
THREADS = 256


def answering(answer):
    """A method of a service, whose errors become gRPC's."""

    @functools.wraps(answer)
    def method(self, request, context):
        try:
            return answer(self, request)
        except TensorFlowError as error:
            context.abort(CODES[error.code], error.message)

    return method


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predictions and signatures of one model."""

    def __init__(self, model):
        self.model = model

    @answering
    def Predict(self, request):
        return self.model.version(request.model_spec).predict(request)

    @answering
    def GetModelMetadata(self, request):
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

    def __init__(self, model):
        self.model = model

    @answering
    def GetModelStatus(self, request):
        return self.model.status(request.model_spec)


def grpc_server(port, model):
    """A server of both services, not yet started, and its port.

    Args:
        port: 0 for any free one.
        model: the `ServedModel`.
    """
    server = grpc.server(
        ThreadPoolExecutor(THREADS),
        options=[
            ("grpc.max_receive_message_length", -1),
            # Another server's port is an error.
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
