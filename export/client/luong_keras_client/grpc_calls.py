"""Requests to TensorFlow Serving over gRPC, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from luong_keras_client.address import Address, TlsFiles
from luong_keras_client.errors import TranslationServerError

# What is used of TensorFlow Serving's messages: the number, type and name of
# each field. A map is a list of entries, and an enumeration a number.
_MESSAGES = {
    "Number": "1 int64 value",
    "ModelSpec": "1 string name, 2 Number version, 3 string signature_name, "
    "4 string version_label",
    "Dim": "1 int64 size",
    "Shape": "2 Dim* dim",
    "Tensor": "1 int32 dtype, 2 Shape tensor_shape, 4 bytes tensor_content, "
    "5 float* float_val, 7 int32* int_val, 8 bytes* string_val, "
    "10 int64* int64_val, 11 bool* bool_val",
    "Entry": "1 string key, 2 Tensor value",
    "PredictRequest": "1 ModelSpec model_spec, 2 Entry* inputs, "
    "3 string* output_filter",
    "PredictResponse": "1 Entry* outputs",
    "StatusRequest": "1 ModelSpec model_spec",
    "Version": "1 int64 version, 2 int32 state",
    "StatusResponse": "1 Version* model_version_status",
}
# Number of a type -> the field of its values, and the type in NumPy.
_TYPES: dict[int, tuple[str, Any]] = {
    1: ("float_val", np.float32),
    3: ("int_val", np.int32),
    7: ("string_val", object),
    9: ("int64_val", np.int64),
    10: ("bool_val", bool),
}
_STATES = {
    **{0: "UNKNOWN", 10: "START", 20: "LOADING", 30: "AVAILABLE"},
    **{40: "UNLOADING", 50: "END"},
}
_OPTIONS = [
    # Alignments of a large batch are larger than gRPC's 4 MB.
    ("grpc.max_receive_message_length", 2**30),
    ("grpc.max_send_message_length", -1),
    # A server that starts again is noticed within the retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def _message_types() -> SimpleNamespace:
    kinds = descriptor_pb2.FieldDescriptorProto
    package = "luong_keras_client"
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            number, kind, field_name = field.split()
            added = message.field.add(name=field_name, number=int(number))
            repeated = kind.endswith("*")
            added.label = (
                kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            )
            kind = kind.rstrip("*")
            if kind in _MESSAGES:
                added.type_name = f".{package}.{kind}"
                added.type = kinds.TYPE_MESSAGE
            else:
                added.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return SimpleNamespace(
        **{
            name: message_factory.GetMessageClass(
                pool.FindMessageTypeByName(f"{package}.{name}")
            )
            for name in _MESSAGES
        }
    )


_types = _message_types()


class GrpcConnection:
    """One model behind one address; `send` waits, `asend` is awaited."""

    def __init__(
        self, address: Address, tls: TlsFiles, asynchronous: bool
    ) -> None:
        self._headers = tuple(address.headers.items())
        self._spec: Any = _types.ModelSpec(name=address.model)
        if address.version is not None:
            self._spec.version.value = address.version
        elif address.label is not None:
            self._spec.version_label = address.label
        kind: Any = grpc.aio if asynchronous else grpc
        options = [*_OPTIONS, ("grpc.enable_http_proxy", 0)]
        if not address.is_loopback:
            options.pop()
        if address.encrypted:
            credentials = grpc.ssl_channel_credentials(*tls.contents())
            channel = kind.secure_channel(address.netloc, credentials, options)
        else:
            channel = kind.insecure_channel(address.netloc, options)
        self.close = channel.close
        self._methods = {
            request: channel.unary_unary(
                f"/tensorflow.serving.{path}",
                request.SerializeToString,
                response.FromString,
            )
            for path, request, response in (
                (
                    "PredictionService/Predict",
                    _types.PredictRequest,
                    _types.PredictResponse,
                ),
                (
                    "ModelService/GetModelStatus",
                    _types.StatusRequest,
                    _types.StatusResponse,
                ),
            )
        }

    def request(
        self,
        signature: str,
        columns: Mapping[str, np.ndarray],
        outputs: Sequence[str],
    ) -> Any:
        """What `send` takes."""
        request = _types.PredictRequest(
            model_spec=self._spec, output_filter=outputs
        )
        request.model_spec.signature_name = signature
        for name, array in columns.items():
            request.inputs.add(key=name, value=_tensor(array))
        return request

    def arrays(self, answer: Any, outputs: Sequence[str]) -> Any:
        """The arrays that a signature answers, strings as bytes."""
        return {entry.key: _array(entry.value) for entry in answer.outputs}

    def status_request(self) -> Any:
        """Likewise, for the states of the versions."""
        return _types.StatusRequest(model_spec=self._spec)

    def states(self, answer: Any) -> dict[int, str]:
        """The state of every version."""
        versions = answer.model_version_status
        return {one.version: _STATES[one.state] for one in versions}

    def send(self, request: Any, seconds: float) -> Any:
        """The response, within so many seconds."""
        method = self._methods[type(request)]
        try:
            return method(request, timeout=seconds, metadata=self._headers)
        except grpc.RpcError as error:
            # Its text stands in ours, where it is looked through for secrets.
            raise _failure(error) from None

    async def asend(self, request: Any, seconds: float) -> Any:
        """As `send`."""
        method = self._methods[type(request)]
        try:
            return await method(
                request, timeout=seconds, metadata=self._headers
            )
        except grpc.RpcError as error:
            raise _failure(error) from None


def _failure(error: Any) -> TranslationServerError:
    told, code = error.details() or "no message", error.code().name
    if code == "UNAVAILABLE" and "SSL_ERROR_SSL" in told:
        # To gRPC a certificate that is refused is a server that is away.
        code = "UNAUTHENTICATED"
    metadata = dict(error.trailing_metadata() or ())
    # Milliseconds; negative where there shall be no other attempt.
    pushback = str(metadata.get("grpc-retry-pushback-ms", ""))
    wait = float(pushback) / 1000 if pushback.isdecimal() else None
    return TranslationServerError(told, code, wait)


def _tensor(array: np.ndarray) -> Any:
    dtypes = {np.dtype(kind): number for number, (_, kind) in _TYPES.items()}
    shape = {"dim": [{"size": size} for size in array.shape]}
    tensor = _types.Tensor(dtype=dtypes[array.dtype], tensor_shape=shape)
    if array.dtype == object:
        texts = [x.encode() if isinstance(x, str) else x for x in array]
        tensor.string_val.extend(texts)
    else:
        tensor.tensor_content = array.tobytes()
    return tensor


def _array(tensor: Any) -> np.ndarray:
    field, kind = _TYPES[tensor.dtype]
    values: Any = np.array(getattr(tensor, field), kind)
    if tensor.tensor_content:
        values = np.frombuffer(tensor.tensor_content, kind).copy()
    return values.reshape([dim.size for dim in tensor.tensor_shape.dim])
