"""The errors of the loopback server."""


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
