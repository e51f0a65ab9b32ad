"""The server that `LUONG_KERAS_SERVING_URL` names."""

import os
from urllib.parse import urlsplit

import pytest


class RealServer:
    """A running TensorFlow Serving, which the tests must leave as it is.

    Args:
        rest_url: `http://HOST:PORT/v1/models/NAME`. gRPC is spoken to
            `LUONG_KERAS_SERVING_GRPC`, by default to port 8500 of the host.
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
        """Lets it run."""
