"""The session of a model in the loopback server."""

import contextlib

import numpy as np
import tensorflow as tf

from luong_keras.serving import SavedModelSession
from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT = 3


@contextlib.contextmanager
def errors_of_the_runtime():
    """Raise errors of TensorFlow inside as `TensorFlowError`."""
    try:
        yield
    except tf.errors.OpError as error:
        raise TensorFlowError(error.error_code, error.message) from error
    except ValueError as error:
        # Python refuses a wrong shape before the runtime, with the same code.
        raise TensorFlowError(INVALID_ARGUMENT, str(error)) from error


class CheckedSession(SavedModelSession):
    """A session that does not convert inputs, like the server's runtime.

    Raises:
        TensorFlowError: If the runtime refuses the model or a call.
    """

    def __init__(self, folder, threads=None):
        with errors_of_the_runtime():
            super().__init__(folder, threads)

    def run(self, inputs, outputs):
        """Feed and fetch tensors, like `SavedModelSession.run`."""
        self._check_types(inputs)
        with errors_of_the_runtime():
            return super().run(inputs, outputs)

    def _check_types(self, inputs):
        """Check the types of arrays, which Python would convert."""
        for place, (name, array) in enumerate(inputs.items()):
            tensor = self._session.graph.get_tensor_by_name(name)
            kind = tf.as_dtype(np.asarray(array).dtype)
            if kind != tensor.dtype:
                raise TensorFlowError(
                    INVALID_ARGUMENT,
                    f"Expects arg[{place}] to be {tensor.dtype.name} but "
                    f"{kind.name} is provided",
                )
