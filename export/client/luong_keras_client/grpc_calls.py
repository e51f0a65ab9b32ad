"""Requests to TensorFlow Serving over gRPC, without TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
from google.protobuf import descriptor_pool, message_factory, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from luong_keras_client.address import Address
from luong_keras_client.errors import UNREADABLE, TranslationServerError

# The part of TensorFlow Serving's messages that the client uses.
_TEXT = Path(__file__).with_name("messages.txtpb").read_text(encoding="utf-8")
_FILES = text_format.Parse(_TEXT, FileDescriptorSet()).file
_POOL = descriptor_pool.DescriptorPool()
_MESSAGES: dict[str, Any] = {
    name.rpartition(".")[2]: message
    for name, message in message_factory.GetMessages(_FILES, _POOL).items()
}
_SERVICES = {"Predict": "PredictionService", "GetModelStatus": "ModelService"}
# Number of a type -> the field of its values, and its NumPy type.
_TYPES: dict[int, tuple[str, Any]] = {
    1: ("float_val", np.float32),
    3: ("int_val", np.int32),
    7: ("string_val", object),
    9: ("int64_val", np.int64),
    10: ("bool_val", bool),
}
_NUMBERS = {np.dtype(kind): number for number, (_, kind) in _TYPES.items()}
_STATES = {
    0: "UNKNOWN",
    10: "START",
    20: "LOADING",
    30: "AVAILABLE",
    40: "UNLOADING",
    50: "END",
}
_OPTIONS = [
    # Alignments of a large batch can exceed gRPC's default of 4 MB.
    ("grpc.max_receive_message_length", 2**30),
    ("grpc.max_send_message_length", -1),
    # Reconnect to a restarted server within the retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class Connection:
    """Connection to one model; `files` are PEM files, or None."""

    def __init__(
        self, address: Address, files: Any, tls: Any, mode: Any
    ) -> None:
        self._mode = mode
        self._headers = tuple(address.headers.items())
        self._spec = _MESSAGES["ModelSpec"](name=address.model)
        if address.version is not None:
            self._spec.version.value = address.version
        self._spec.version_label = address.label or ""
        kind: Any = grpc.aio if mode.is_async else grpc
        # This machine needs no proxy.
        proxy = ("grpc.enable_http_proxy", int(not address.is_loopback))
        options = [*_OPTIONS, proxy]
        if address.is_encrypted:
            ca, certificate, key = files
            key = key or certificate
            pem = (x and Path(x).read_bytes() for x in (ca, key, certificate))
            tls = grpc.ssl_channel_credentials(*pem)
            self._channel = kind.secure_channel(address.netloc, tls, options)
        else:
            self._channel = kind.insecure_channel(address.netloc, options)

    async def predict(
        self, signature: str, columns: Any, outputs: Any, seconds: float
    ) -> dict[str, np.ndarray]:
        """Return outputs of the model."""
        request = _MESSAGES["PredictRequest"](output_filter=outputs)
        request.model_spec.CopyFrom(self._spec)
        request.model_spec.signature_name = signature
        for name, array in columns.items():
            request.inputs.add(key=name, value=_encode_array(array))
        return await self._send(
            "Predict",
            request,
            seconds,
            lambda answer: {
                x.key: _decode_tensor(x.value) for x in answer.outputs
            },
        )

    async def states(self, seconds: float) -> dict[int, str]:
        """Return the state of each version."""
        request = _MESSAGES["GetModelStatusRequest"](model_spec=self._spec)
        return await self._send(
            "GetModelStatus",
            request,
            seconds,
            lambda answer: {
                x.version: _STATES[x.state] for x in answer.model_version_status
            },
        )

    async def close(self) -> None:
        await self._mode.value(self._channel.close())

    async def _send(
        self, name: str, message: Any, seconds: float, read: Any
    ) -> Any:
        method = self._channel.unary_unary(
            f"/tensorflow.serving.{_SERVICES[name]}/{name}",
            _MESSAGES[f"{name}Request"].SerializeToString,
            _MESSAGES[f"{name}Response"].FromString,
        )
        try:
            answer = await self._mode.value(
                method(message, timeout=seconds, metadata=self._headers)
            )
        except grpc.RpcError as error:
            # Not chained: secrets are hidden only in the new error's text.
            raise _server_error(error) from None
        try:
            return read(answer)
        except UNREADABLE as error:
            text = f"an answer with {error!r}"
            raise TranslationServerError(text, "MALFORMED") from None


def _server_error(error: Any) -> TranslationServerError:
    message, code = error.details() or "no message", error.code().name
    if code == "UNAVAILABLE" and "SSL_ERROR_SSL" in message:
        # gRPC reports a refused certificate as an unavailable server.
        code = "UNAUTHENTICATED"
    # The limit and the timeout of a proxy, which gRPC reports in the same way.
    if "http2 header with status: 429" in message:
        code = "RESOURCE_EXHAUSTED"
    if "http2 header with status: 504" in message:
        code = "DEADLINE_EXCEEDED"
    # Milliseconds; any other value forbids another attempt.
    metadata = dict(error.trailing_metadata() or ())
    wait = metadata.get("grpc-retry-pushback-ms")
    seconds = None if wait is None else float("inf")
    if str(wait).isdecimal():
        seconds = float(str(wait)) / 1000
    return TranslationServerError(message, code, seconds)


def _encode_array(array: np.ndarray) -> Any:
    tensor = _MESSAGES["Tensor"](dtype=_NUMBERS[array.dtype])
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    if array.dtype == object:
        texts = [x.encode() if isinstance(x, str) else x for x in array]
        tensor.string_val.extend(texts)
    else:
        tensor.tensor_content = array.tobytes()
    return tensor


def _decode_tensor(tensor: Any) -> np.ndarray:
    field, kind = _TYPES[tensor.dtype]
    array: Any = np.array(getattr(tensor, field), kind)
    if tensor.tensor_content:
        array = np.frombuffer(tensor.tensor_content, kind).copy()
    return array.reshape([dim.size for dim in tensor.tensor_shape.dim])
