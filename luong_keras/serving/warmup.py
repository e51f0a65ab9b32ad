"""Requests that a server answers before it takes any: TF Serving's warm-up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

FILE = Path("assets.extra", "tf_serving_warmup_requests")


def write_warmup(
    folder: Path, requests: Mapping[str, Mapping[str, tf.Tensor]]
) -> None:
    """Adds one request a signature to a SavedModel.

    Args:
        folder: the SavedModel.
        requests: signature -> input -> tensor.
    """
    logs = _protocol()
    (folder / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / FILE)) as file:
        for name, inputs in requests.items():
            log = logs.PredictionLog()
            request = log.predict_log.request
            request.model_spec.signature_name = name
            for key, tensor in inputs.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(tensor))
            file.write(log.SerializeToString())


def read_warmup(folder: Path) -> Iterator[tuple[str, dict]]:
    """Signature and inputs of each request of a SavedModel.

    Yields:
        The signature's name, and arrays by the names of its inputs.
    """
    logs = _protocol()
    for record in tf.data.TFRecordDataset(str(folder / FILE)):
        request = logs.PredictionLog.FromString(
            record.numpy()
        ).predict_log.request
        yield (
            request.model_spec.signature_name or "serving_default",
            {key: tf.make_ndarray(t) for key, t in request.inputs.items()},
        )


def _protocol():
    try:
        from tensorflow_serving.apis import prediction_log_pb2
    except ImportError as error:
        raise missing_package("tensorflow-serving-api", error) from error
    return prediction_log_pb2
