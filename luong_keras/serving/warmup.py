"""Requests that a server answers before it takes any: TF Serving's warm-up."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from luong_keras.missing_package import needs

with needs("tensorflow"):
    import tensorflow as tf
    from google.protobuf import (
        descriptor_pb2,
        descriptor_pool,
        message_factory,
    )

FILE = Path("assets.extra", "tf_serving_warmup_requests")
# The part of TF Serving's messages that a request to predict needs: field ->
# its number and what it holds (tensorflow_serving/apis: prediction_log.proto,
# predict.proto, model.proto). The package of these messages needs one version
# of TensorFlow only.
_MESSAGES = {
    "PredictionLog": {"predict_log": (6, "PredictLog")},
    "PredictLog": {"request": (1, "PredictRequest")},
    "PredictRequest": {"model_spec": (1, "ModelSpec"), "inputs": (2, "Input")},
    "ModelSpec": {"name": (1, "string"), "signature_name": (3, "string")},
    # An entry of the map `inputs`; a TensorProto is read as its bytes.
    "Input": {"key": (1, "string"), "value": (2, "bytes")},
}


def write_warmup(
    folder: Path, requests: Mapping[str, Mapping[str, tf.Tensor]]
) -> None:
    """Adds one request a signature to a SavedModel.

    Args:
        folder: the SavedModel.
        requests: signature -> input -> tensor.
    """
    (folder / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / FILE)) as file:
        for name, inputs in requests.items():
            log = _prediction_log()()
            request = log.predict_log.request
            request.model_spec.signature_name = name
            for key, tensor in inputs.items():
                value = tf.make_tensor_proto(tensor).SerializeToString()
                request.inputs.add(key=key, value=value)
            file.write(log.SerializeToString())


def read_warmup(folder: Path) -> Iterator[tuple[str, dict]]:
    """Signature and inputs of each request of a SavedModel.

    Yields:
        The signature's name, and arrays by the names of its inputs.
    """
    tensor_proto = type(tf.make_tensor_proto(0))
    for record in tf.data.TFRecordDataset(str(folder / FILE)):
        log = _prediction_log().FromString(record.numpy())
        request = log.predict_log.request
        yield (
            request.model_spec.signature_name or "serving_default",
            {
                entry.key: tf.make_ndarray(tensor_proto.FromString(entry.value))
                for entry in request.inputs
            },
        )


@functools.cache
def _prediction_log() -> Any:
    """The class of the messages in a warm-up file."""
    package = "luong_keras.warmup"
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    field_type = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for key, (number, holds) in fields.items():
            field = message.field.add(name=key, number=number)
            field.label = (
                field_type.LABEL_REPEATED
                if holds == "Input"
                else field_type.LABEL_OPTIONAL
            )
            if holds in _MESSAGES:
                field.type = field_type.TYPE_MESSAGE
                field.type_name = f".{package}.{holds}"
            else:
                field.type = getattr(field_type, f"TYPE_{holds.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{package}.PredictionLog")
    )
