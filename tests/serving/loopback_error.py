"""The error of the loopback server."""


class TensorFlowError(RuntimeError):
    """Error of a request that the server refuses.

    Attributes:
        code: Status code of TensorFlow: 3 for an invalid argument, 5 for not
            found.
        message: The server's message.
    """

    def __init__(self, code, message):
        super().__init__(f"{message} (code {code})")
        self.code, self.message = code, message
