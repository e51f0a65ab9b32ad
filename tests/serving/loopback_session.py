"""How the loopback server runs the graph of a model."""

import time

from luong_keras.serving.saved_model_session import (
    SavedModelSession,
    TensorFlowError,
)

DEADLINE_EXCEEDED = 4


class SlowSession(SavedModelSession):
    """A session whose runs take longer, as on a busy machine.

    Args:
        folder: the SavedModel.
        threads: how many compute, as many as there are cores when None.

    Attributes:
        slow: seconds that are added to each run; they count for its timeout.
    """

    slow = 0.0

    def run(self, inputs, outputs, milliseconds=0):
        """As `SavedModelSession.run`; a negative timeout is none."""
        # RunOptions.timeout_in_ms: only above 0 (direct_session.cc, 2.21.0).
        if milliseconds <= 0:
            time.sleep(self.slow)
            return super().run(inputs, outputs)
        left = milliseconds - int(self.slow * 1000)
        time.sleep(min(self.slow, milliseconds / 1000))
        if left <= 0:
            raise TensorFlowError(
                DEADLINE_EXCEEDED, "Timed out waiting for notification"
            )
        return super().run(inputs, outputs, left)
