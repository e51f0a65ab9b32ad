"""A double of TensorFlow's model server, for tests and benchmarks.

    python -m tests.serving.loopback_server \\
        --base-path models/translator --name translator

It serves one model over gRPC and REST, to this machine alone, and speaks as
TensorFlow Serving does: the same services, paths, formats and refusals, the
same watching of the folder, the same batches, threads, timeouts and metrics.
The models run in sessions of TensorFlow, as in the real server. When it is
ready it prints one line of JSON with the ports.
"""

import argparse
import json
import os
import signal
import threading

from google.protobuf import text_format

from tests.serving import loopback_metrics
from tests.serving.loopback_batching import Batching
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_grpc import grpc_server
from tests.serving.loopback_model import ServedModel
from tests.serving.loopback_rest import RestServer
from tests.serving.loopback_version import Settings
from tests.serving.server_protos import read_text, unpublished

# server.h, 2.20.0.
THREADS = 4 * (os.cpu_count() or 1)


def main():
    """Serves until a signal ends it."""
    arguments, parent = parser().parse_args(), os.getppid()
    try:
        model = ServedModel(
            arguments.name,
            arguments.base_path,
            arguments.config,
            settings(arguments),
        )
        metrics_path = read_metrics_path(arguments.monitoring_config_file)
    except (OSError, text_format.ParseError, TensorFlowError) as error:
        raise SystemExit(getattr(error, "message", str(error))) from error
    model.poll()
    if not model.available:
        raise SystemExit(
            "Expected: a version that can be served, a folder with a number "
            f"as its name. Received: {arguments.base_path}, without any."
        )
    rest = RestServer(
        arguments.rest_port,
        model,
        arguments.cors,
        metrics_path=metrics_path,
        timeout=arguments.rest_api_timeout_in_ms,
        threads=arguments.rest_api_num_threads,
    )
    server, grpc_port = grpc_server(
        arguments.grpc_port, model, arguments.grpc_max_threads
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=rest.serve_forever, daemon=True).start()
    server.start()
    ports = {"rest_port": rest.server_address[1], "grpc_port": grpc_port}
    print(json.dumps(ports), flush=True)
    while not stop.wait(arguments.poll_seconds):
        if arguments.with_parent and os.getppid() != parent:
            break
        model.poll()
    rest.shutdown()
    server.stop(grace=5).wait()


def settings(arguments):
    """How the versions run, as the command line says."""
    metrics, batching = loopback_metrics.Metrics(), None
    path = arguments.batching_parameters_file
    if arguments.enable_batching:
        parameters = unpublished("BatchingParameters")
        if path:
            parameters = read_text(path, parameters)
        batching = Batching(parameters, metrics)
    elif path:
        # BuildAndStart, server.cc, 2.20.0.
        raise TensorFlowError(
            3,
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true.",
        )
    return Settings(arguments.threads, arguments.slow, batching, metrics)


def read_metrics_path(path):
    """Where a `MonitoringConfig` has the metrics, or None for nowhere."""
    config = unpublished("MonitoringConfig")
    if path:
        config = read_text(path, config)
    if not config.prometheus_config.enable:
        return None
    return config.prometheus_config.path or loopback_metrics.DEFAULT_PATH


def parser():
    """The command line."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument(
        "--base-path", required=True, help="folder of the versions"
    )
    options.add_argument("--name", required=True, help="of the model")
    options.add_argument("--rest-port", type=int, default=0, help="0: any")
    options.add_argument("--grpc-port", type=int, default=0, help="0: any")
    options.add_argument(
        "--config",
        help="a ModelServerConfig with version policy and labels of the model",
    )
    options.add_argument(
        "--threads", type=int, help="that compute; default: all cores"
    )
    options.add_argument(
        "--enable-batching",
        action="store_true",
        help="join the rows of requests, each signature's in a queue",
    )
    options.add_argument(
        "--batching-parameters-file",
        metavar="FILE",
        help="a BatchingParameters proto as text: how to make batches",
    )
    options.add_argument(
        "--monitoring-config-file",
        metavar="FILE",
        help="a MonitoringConfig proto as text: where REST has the metrics",
    )
    options.add_argument(
        "--rest-api-timeout-in-ms",
        type=int,
        default=30_000,
        metavar="N",
        help="that the run of a request by REST may take; 0: any time",
    )
    for name in ("--rest-api-num-threads", "--grpc-max-threads"):
        options.add_argument(
            name,
            type=int,
            default=THREADS,
            metavar="N",
            help="N - 1 requests are answered at once; default: 4 a core",
        )
    options.add_argument(
        "--slow",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="adds so long to each run of the model, but to no warm-up",
    )
    options.add_argument(
        "--poll-seconds",
        type=float,
        default=1.0,
        help="how often the folder is looked at",
    )
    options.add_argument(
        "--cors",
        action="store_true",
        help="as --rest_api_enable_cors_support of the real server",
    )
    options.add_argument(
        "--with-parent",
        action="store_true",
        help="end when the process that started it is gone",
    )
    return options


if __name__ == "__main__":
    main()
