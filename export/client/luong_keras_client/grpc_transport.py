"""Requests to TensorFlow Serving over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from luong_keras_client.server_address import ServerAddress
from luong_keras_client.server_error import (
    UNREADABLE,
    TranslationServerError,
    missing_package,
)
from luong_keras_client.tls_files import TlsFiles

try:
    import grpc
except ImportError as error:
    raise missing_package("grpcio", error, "[grpc]") from error
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
    raise missing_package("tensorflow-serving-api", error, "[grpc]") from error

_OPTIONS = [
    # Alignments of a large batch are larger than gRPC's 4 MB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A server that starts again is noticed within the retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_WITHOUT_PROXY = [("grpc.enable_http_proxy", 0)]
# Milliseconds until the next attempt; negative where there shall be none.
_PUSHBACK = "grpc-retry-pushback-ms"


class GrpcTransport:
    """One model behind one gRPC address, over one connection.

    Args:
        address: of the server and the model.
        tls: the certificates.
    """

    def __init__(self, address: ServerAddress, tls: TlsFiles) -> None:
        self._address = address
        self._headers = tuple(address.headers.items())
        options = _OPTIONS + _WITHOUT_PROXY * address.is_loopback
        if address.encrypted:
            credentials = grpc.ssl_channel_credentials(*tls.contents())
            channel = grpc.aio.secure_channel(
                address.netloc, credentials, options
            )
        else:
            channel = grpc.aio.insecure_channel(address.netloc, options)
        self._channel = channel
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(
            channel
        ).Predict
        self._status = model_service_pb2_grpc.ModelServiceStub(
            channel
        ).GetModelStatus

    async def predict(
        self,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        timeout: float,
    ) -> dict[str, np.ndarray]:
        """Arrays of every output, strings as bytes."""
        request = predict_pb2.PredictRequest(output_filter=outputs)
        self._fill(request.model_spec)
        request.model_spec.signature_name = signature
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(_tensor(array))
        response = await self._call(self._predict, request, timeout)
        try:
            return {
                name: tf.make_ndarray(tensor)
                for name, tensor in response.outputs.items()
            }
        except UNREADABLE as error:
            raise TranslationServerError(repr(error), "MALFORMED") from None

    async def status(self, timeout: float) -> dict[int, str]:
        """The state of every version."""
        request = get_model_status_pb2.GetModelStatusRequest()
        self._fill(request.model_spec)
        response = await self._call(self._status, request, timeout)
        name = get_model_status_pb2.ModelVersionStatus.State.Name
        return {
            version.version: name(version.state)
            for version in response.model_version_status
        }

    async def aclose(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    def _fill(self, model_spec: Any) -> None:
        model_spec.name = self._address.model
        if self._address.version is not None:
            model_spec.version.value = self._address.version
        elif self._address.label is not None:
            model_spec.version_label = self._address.label

    async def _call(self, method: Any, request: Any, timeout: float) -> Any:
        try:
            return await method(
                request, timeout=timeout, metadata=self._headers
            )
        except grpc.RpcError as error:
            # Its text stands in ours, where it is looked through for secrets.
            raise _failure(error) from None


def _failure(error: Any) -> TranslationServerError:
    told, code = error.details() or "no message", error.code().name
    if code == "UNAVAILABLE" and "SSL_ERROR_SSL" in told:
        # To gRPC a certificate that is refused is a server that is away.
        code = "UNAUTHENTICATED"
    pushback = dict(error.trailing_metadata() or ()).get(_PUSHBACK, "")
    wait = float(pushback) / 1000 if str(pushback).isdecimal() else None
    return TranslationServerError(told, code, wait)


def _tensor(array: np.ndarray) -> Any:
    if array.dtype != object:
        return tf.make_tensor_proto(array)
    texts = [x.encode() if isinstance(x, str) else x for x in array]
    return tf.make_tensor_proto(texts, tf.string, array.shape)
