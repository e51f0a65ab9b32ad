import os
import sys
from urllib.parse import urlsplit

import pytest

from luong_keras.serving.export import export_saved_model
from tests.serving.server_process import LoopbackProcess
from tests.serving.tiny_translator import tiny_translator


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


@pytest.fixture(scope="session")
def exported_models(tmp_path_factory):
    """`MODELS/tiny`, with the tiny translator as version 1; read only."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    export_saved_model(tiny_translator(), folder / "1")
    return folder


@pytest.fixture(scope="session")
def server(request):
    """What serves a translator: the double, or the server named outside.

    `LUONG_KERAS_SERVING_URL` names a running TensorFlow Serving with the
    export of any translator. Both have `rest_url` (…/v1/models/NAME),
    `grpc_target`, `kill()` and `restart()`; the latter also revives a killed
    one, at the same ports. The double serves the tiny translator.
    """
    url = os.environ.get("LUONG_KERAS_SERVING_URL")
    if url:
        running = RealServer(url)
    elif not sys.platform.startswith("linux"):
        pytest.skip("the double runs the Linux libraries of TensorFlow")
    else:
        running = LoopbackProcess(request.getfixturevalue("exported_models"))
    yield running
    running.stop()
