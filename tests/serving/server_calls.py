"""Calls of a model server without the client."""

import grpc
import requests
import tensorflow as tf
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

SECONDS = 60


def post(url, body):
    """Post bytes or JSON; return status and JSON of the response."""
    data = {"data" if isinstance(body, bytes) else "json": body}
    response = requests.post(url, timeout=SECONDS, **data)
    assert response.headers["Content-Type"] == "application/json"
    return response.status_code, response.json()


def get(url):
    """Get a URL; return status and JSON of the response."""
    response = requests.get(url, timeout=SECONDS)
    assert response.headers["Content-Type"] == "application/json"
    return response.status_code, response.json()


class Grpc:
    """The gRPC services of a server.

    Args:
        server: Object with `rest_url` and `grpc_target`.
    """

    def __init__(self, server):
        self.name = server.rest_url.rpartition("/")[2]
        self.channel = grpc.insecure_channel(server.grpc_target)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(
            self.channel
        )
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def request(self, signature="", name=None, **inputs):
        """Create a `PredictRequest` of lists or arrays."""
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.name if name is None else name
        request.model_spec.signature_name = signature
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        return request

    def predict(self, request):
        """Return the response, and its outputs as arrays."""
        answer = self.predictions.Predict(request, timeout=SECONDS)
        return answer, {
            key: tf.make_ndarray(proto) for key, proto in answer.outputs.items()
        }
