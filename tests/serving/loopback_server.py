"""A double of TensorFlow's model server, for tests and benchmarks.

    python -m tests.serving.loopback_server \\
        --base-path models/translator --name translator

It serves one model over gRPC and REST, only to this machine: predictions and
status, and metadata over REST, with the paths, formats and version changes of
TensorFlow Serving. The model runs in a session of TensorFlow, as in the real
server. When the double is ready, it prints one line of JSON with the ports.
"""

import argparse
import functools
import json
import os
import signal
import threading

from tests.serving.loopback_grpc import grpc_server
from tests.serving.loopback_model import ServedModel
from tests.serving.loopback_rest import RestServer
from tests.serving.loopback_session import CheckedSession
from tests.serving.loopback_version import Settings


def main():
    """Serve until a signal arrives."""
    arguments = parser().parse_args()
    session = functools.partial(CheckedSession, threads=arguments.threads)
    serve(arguments, Settings(session))


def serve(arguments, settings):
    """Serve by arguments of `parser`, until a signal arrives.

    Args:
        arguments: The result of `parse_args`.
        settings: `Settings` of the versions.
    """
    parent = os.getppid()
    model = ServedModel(
        arguments.name, arguments.base_path, arguments.config, settings
    )
    model.poll()
    if not model.available:
        raise SystemExit(
            "Expected: a version that can be served, a folder with a number "
            f"as its name. Received: {arguments.base_path}, without any."
        )
    rest = RestServer(arguments.rest_port, model)
    server, grpc_port = grpc_server(arguments.grpc_port, model)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=rest.serve_forever, daemon=True).start()
    server.start()
    ports = {"rest_port": rest.port, "grpc_port": grpc_port}
    print(json.dumps(ports), flush=True)
    while not stop.wait(arguments.poll_seconds):
        if arguments.with_parent and os.getppid() != parent:
            break
        model.poll()
    rest.shutdown()
    server.stop(grace=5).wait()


def parser():
    """Create the parser of the command line."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = options.add_argument
    add("--base-path", required=True, help="folder of the versions")
    add("--name", required=True, help="name of the model")
    add("--rest-port", type=int, default=0, help="0: any")
    add("--grpc-port", type=int, default=0, help="0: any")
    add("--config", help="a ModelServerConfig with version policy and labels")
    add("--threads", type=int, help="threads that compute; default: all cores")
    seconds = "seconds between two looks at the folder"
    add("--poll-seconds", type=float, default=1.0, help=seconds)
    parent = "end when the process that started it has ended"
    add("--with-parent", action="store_true", help=parent)
    return options


if __name__ == "__main__":
    main()
