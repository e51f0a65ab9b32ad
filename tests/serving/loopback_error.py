"""The errors of the loopback server."""

import contextlib

import tensorflow as tf


class TensorFlowError(RuntimeError):
    """What the server refuses.

    Attributes:
        code: TensorFlow's status code: 3 for an invalid argument, 5 for
            something not found.
        message: what the server says.
    """

    def __init__(self, code, message):
        super().__init__(f"{message} (code {code})")
        self.code, self.message = code, message


@contextlib.contextmanager
def errors_of_the_runtime():
    """Raises `TensorFlowError` for what TensorFlow raises inside."""
    try:
        yield
    except tf.errors.OpError as error:
        # Python adds to a message where its operation was made; the error
        # before has the runtime's words.
        first = error.__context__
        if not isinstance(first, tf.errors.OpError):
            first = error
        raise TensorFlowError(first.error_code, first.message) from error
