"""The server at `LUONG_KERAS_SERVING_URL`."""

import os
from urllib.parse import urlsplit

import pytest


class RealServer:
    """A running TensorFlow Serving, which tests may not stop.

    Args:
        rest_url: `http://HOST:PORT/v1/models/NAME`. The gRPC address is
            `LUONG_KERAS_SERVING_GRPC`, by default port 8500 of the host.
    """

    def __init__(self, rest_url):
        self.rest_url = rest_url.rstrip("/")
        self.grpc_target = os.environ.get(
            "LUONG_KERAS_SERVING_GRPC", f"{urlsplit(rest_url).hostname}:8500"
        )

    def kill(self):
        pytest.skip("would kill a server that the tests did not start")

    def restart(self):
        pytest.skip("would restart a server that the tests did not start")

    def stop(self):
        """Leave the server running."""
