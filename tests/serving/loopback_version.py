"""A loaded version of a model in the loopback server."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_json import write
from tests.serving.loopback_session import CheckedSession

INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 3, 5, 9
WARM_UP = "assets.extra/tf_serving_warmup_requests"
# Type of NumPy -> type of TensorFlow and the field of the proto.
FIELDS = {
    "object": (types_pb2.DT_STRING, "string_val"),
    "float32": (types_pb2.DT_FLOAT, "float_val"),
    "int32": (types_pb2.DT_INT32, "int_val"),
    "bool": (types_pb2.DT_BOOL, "bool_val"),
}


@dataclass(frozen=True)
class Settings:
    """Settings of all versions of a model.

    Args:
        session: Function from a folder to a session.
        write: Function that writes responses, like `loopback_json.write`.
    """

    session: Callable = CheckedSession
    write: Callable = write


class ModelVersion:
    """A loaded SavedModel.

    Args:
        folder: The SavedModel; its name is the version's number.
        settings: `Settings`.

    Raises:
        TensorFlowError: If the runtime cannot load it or a warm-up request
            fails.
        OSError, DecodeError: If a file is missing or broken.
    """

    def __init__(self, folder, settings):
        self.number = int(folder.name)
        saved = saved_model_pb2.SavedModel()
        saved.ParseFromString((folder / "saved_model.pb").read_bytes())
        (meta_graph,) = saved.meta_graphs
        self.signatures = meta_graph.signature_def
        self._session = settings.session(folder)
        # Requests refer to this object: the last of them frees the model.
        weakref.finalize(self, self._session.close).atexit = False
        self._warm_up(folder / WARM_UP)

    def _warm_up(self, path):
        if not path.exists():
            return
        try:
            records = list(tf.data.TFRecordDataset(str(path)))
        except tf.errors.OpError as error:  # deleted meanwhile, or damaged
            raise TensorFlowError(
                error.error_code, f"Failed to read warmup data: {error.message}"
            ) from error
        for record in records:
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            self.predict(log.predict_log.request)

    def run(self, signature, arrays, outputs=()):
        """Compute outputs of a signature.

        Args:
            signature: A value of `signatures`.
            arrays: Input name -> array.
            outputs: Names of the outputs; all outputs by default.
        """
        names = outputs or signature.outputs
        return self._session.run(
            {signature.inputs[key].name: x for key, x in arrays.items()},
            {key: signature.outputs[key].name for key in names},
        )

    def predict(self, request):
        """Return the `PredictResponse` to a `PredictRequest`."""
        name = request.model_spec.signature_name or "serving_default"
        if name not in self.signatures:
            message = f'Serving signature key "{name}" not found.'
            raise TensorFlowError(FAILED_PRECONDITION, message)
        signature = self.signatures[name]
        if set(request.inputs) != set(signature.inputs) or not (
            set(request.output_filter) <= set(signature.outputs)
        ):
            raise TensorFlowError(INVALID_ARGUMENT, "invalid names")
        arrays = {key: tf.make_ndarray(x) for key, x in request.inputs.items()}
        response = predict_pb2.PredictResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = self.number
        response.model_spec.signature_name = name
        found = self.run(signature, arrays, request.output_filter)
        for key, array in found.items():
            response.outputs[key].CopyFrom(proto_of(array))
        return response


def proto_of(array):
    """Convert an output to a proto, with its values in a typed field."""
    dtype, field = FIELDS[array.dtype.name]
    proto = tensor_pb2.TensorProto(dtype=dtype)
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    getattr(proto, field).extend(array.ravel().tolist())
    return proto
