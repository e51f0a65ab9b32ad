"""Requests to TensorFlow Serving over gRPC."""

from __future__ import annotations

import numpy as np

from luong_keras.client.server_error import TranslationServerError
from luong_keras.missing_package import missing_package

try:
    import grpc
except ImportError as error:
    raise missing_package("grpcio", error, "grpc") from error
try:
    # Its messages contain TensorFlow's, so they need TensorFlow as well.
    import tensorflow as tf
    from tensorflow_serving.apis import (
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
        prediction_service_pb2_grpc,
    )
except ImportError as error:
    raise missing_package("tensorflow-serving-api", error, "grpc") from error

_OPTIONS = [
    # Alignments of a large batch are larger than gRPC's 4 MB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A server that starts again is noticed within the retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class GrpcTransport:
    """One model behind one gRPC address, over one connection.

    Args:
        target: `HOST:PORT`.
        model: the name of the model.
        version: its number or label; None for the newest.
    """

    def __init__(
        self, target: str, model: str, version: int | str | None
    ) -> None:
        self._model, self._version = model, version
        self._channel = grpc.insecure_channel(target, _OPTIONS)
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(
            self._channel
        ).Predict
        self._status = model_service_pb2_grpc.ModelServiceStub(
            self._channel
        ).GetModelStatus

    def predict(
        self, signature: str, inputs: dict[str, np.ndarray], timeout: float
    ) -> dict[str, np.ndarray]:
        """Arrays of every output, strings as bytes."""
        request = predict_pb2.PredictRequest()
        self._fill(request.model_spec)
        request.model_spec.signature_name = signature
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(_tensor(array))
        response = _call(self._predict, request, timeout)
        return {
            name: tf.make_ndarray(tensor)
            for name, tensor in response.outputs.items()
        }

    def status(self, timeout: float) -> dict[int, str]:
        """The state of every version."""
        request = get_model_status_pb2.GetModelStatusRequest()
        self._fill(request.model_spec)
        response = _call(self._status, request, timeout)
        name = get_model_status_pb2.ModelVersionStatus.State.Name
        return {
            version.version: name(version.state)
            for version in response.model_version_status
        }

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _fill(self, model_spec) -> None:
        model_spec.name = self._model
        if isinstance(self._version, int):
            model_spec.version.value = self._version
        elif self._version is not None:
            model_spec.version_label = self._version


def _tensor(array: np.ndarray):
    if array.dtype != object:
        return tf.make_tensor_proto(array)
    texts = [x.encode() if isinstance(x, str) else x for x in array]
    return tf.make_tensor_proto(texts, tf.string, array.shape)


def _call(method, request, timeout: float):
    try:
        return method(request, timeout=timeout)
    except grpc.RpcError as error:
        raise TranslationServerError(
            error.details(), error.code().name
        ) from error
