"""The loopback server as a process."""

import json
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


class LoopbackProcess:
    """A process with the double of TensorFlow's model server.

    Args:
        base_path: `MODELS/NAME`, the folder of the versions.
        *options: Further options of the `module`.

    Attributes:
        rest_url: `http://127.0.0.1:PORT/v1/models/NAME`.
        grpc_target: `127.0.0.1:PORT`.
    """

    module = "tests.serving.loopback_server"
    folder = CHECKOUT

    def __init__(self, base_path, *options):
        self.base_path, self.options = Path(base_path), options
        self.rest_port = self.grpc_port = 0
        self.start()

    def start(self):
        """Start the server, at the same ports as before."""
        command = [
            *(sys.executable, "-m", self.module),
            *("--base-path", str(self.base_path)),
            *("--name", self.base_path.name),
            *("--rest-port", str(self.rest_port)),
            *("--grpc-port", str(self.grpc_port)),
            "--with-parent",  # It ends even if the test run is killed.
            *self.options,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=self.folder, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise RuntimeError(f"The server ended with {code} at its start.")
        ports = json.loads(line)
        self.rest_port, self.grpc_port = ports["rest_port"], ports["grpc_port"]
        url = f"http://127.0.0.1:{self.rest_port}/v1/models/"
        self.rest_url = url + self.base_path.name
        self.grpc_target = f"127.0.0.1:{self.grpc_port}"

    def kill(self):
        self.process.kill()
        self.close()

    def restart(self):
        self.stop()
        self.start()

    def stop(self):
        self.process.terminate()
        self.close()

    def close(self):
        self.process.wait(timeout=30)
        self.process.stdout.close()
