"""How the loopback server runs the graph of a model."""

import time

import numpy as np
import tensorflow as tf

from luong_keras.serving import SavedModelSession
from tests.serving.loopback_error import TensorFlowError, errors_of_the_runtime

INVALID_ARGUMENT, DEADLINE_EXCEEDED = 3, 4


class SlowSession(SavedModelSession):
    """A session whose runs take longer, as on a busy machine.

    Args:
        folder: the SavedModel.
        threads: how many compute, as many as there are cores when None.

    Attributes:
        slow: seconds that are added to each run; they count for its timeout.

    Raises:
        TensorFlowError: where the runtime refuses the model or a call.
    """

    slow = 0.0

    def __init__(self, folder, threads=None):
        with errors_of_the_runtime():
            super().__init__(folder, threads)

    def run(self, inputs, outputs, milliseconds=0):
        """As `SavedModelSession.run`; a negative timeout is none."""
        # RunOptions.timeout_in_ms: only above 0 (direct_session.cc, 2.21.0).
        time.sleep(min(self.slow, max(milliseconds, 0) / 1000 or self.slow))
        left = milliseconds - int(self.slow * 1000)
        if milliseconds > 0 and left <= 0:
            raise TensorFlowError(
                DEADLINE_EXCEEDED, "Timed out waiting for notification"
            )
        self._check_types(inputs)
        with errors_of_the_runtime():
            return super().run(inputs, outputs, left if milliseconds > 0 else 0)

    def _check_types(self, inputs):
        """Refuses what Python would convert, as the runtime does."""
        for place, (name, array) in enumerate(inputs.items()):
            tensor = self._session.graph.get_tensor_by_name(name)
            kind = tf.as_dtype(np.asarray(array).dtype)
            if kind != tensor.dtype:
                raise TensorFlowError(
                    INVALID_ARGUMENT,
                    f"Expects arg[{place}] to be {tensor.dtype.name} but "
                    f"{kind.name} is provided",
                )
