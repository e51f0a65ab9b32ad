"""Warm-up requests, which TF Serving runs before it accepts any others."""

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
        text_format,
    )

FILE = Path("assets.extra", "tf_serving_warmup_requests")


def write_warmup(
    folder: Path, requests: Mapping[str, Mapping[str, tf.Tensor]]
) -> None:
    """Add one request per signature to a SavedModel.

    Args:
        folder: The SavedModel.
        requests: Signature -> input -> tensor.
    """
    (folder / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / FILE)) as file:
        for name, inputs in requests.items():
            log = _prediction_log_class()()
            request = log.predict_log.request
            request.model_spec.signature_name = name
            for key, tensor in inputs.items():
                value = tf.make_tensor_proto(tensor).SerializeToString()
                request.inputs.add(key=key, value=value)
            file.write(log.SerializeToString())


def read_warmup(folder: Path) -> Iterator[tuple[str, dict]]:
    """Read the signature and inputs of each warm-up request of a SavedModel.

    Yields:
        The name of the signature, and arrays by the names of its inputs.
    """
    tensor_proto = type(tf.make_tensor_proto(0))
    for record in tf.data.TFRecordDataset(str(folder / FILE)):
        log = _prediction_log_class().FromString(record.numpy())
        request = log.predict_log.request
        yield (
            request.model_spec.signature_name or "serving_default",
            {
                entry.key: tf.make_ndarray(tensor_proto.FromString(entry.value))
                for entry in request.inputs
            },
        )


@functools.cache
def _prediction_log_class() -> Any:
    """Create the class of the messages in a warm-up file."""
    text = Path(__file__).with_name("warmup.txtpb").read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("luong_keras.warmup.PredictionLog")
    )
