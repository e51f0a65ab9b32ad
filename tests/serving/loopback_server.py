"""A double of TensorFlow's model server, for tests and benchmarks.

python -m tests.serving.loopback_server --base-path models/demo --name demo

It serves one model over gRPC and REST, to this machine alone, and speaks as
TensorFlow Serving does: the same services, paths, formats and refusals, the
same watching of the folder. The models run in TensorFlow's C++ runtime, as
in the real server. Requests are not batched together. When it is ready it
prints one line of JSON with the ports.
"""

import argparse
import functools
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from luong_keras.serving.saved_model_session import TensorFlowError
from tests.serving.loopback_model import ServedModel
from tests.serving.loopback_rest import RestServer
from tests.serving.loopback_version import INVALID_ARGUMENT

GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}
GRPC_THREADS = 32


def answering(answer):
    """A method of a service, whose errors become gRPC's."""

    @functools.wraps(answer)
    def method(self, request, context):
        try:
            return answer(self, request)
        except TensorFlowError as error:
            context.abort(GRPC_CODES[error.code], error.message)

    return method


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predictions and signatures of one model."""

    def __init__(self, model):
        self.model = model

    @answering
    def Predict(self, request):
        version = self.model.version(request.model_spec)
        return version.predict(request)

    @answering
    def GetModelMetadata(self, request):
        if not request.HasField("model_spec"):
            raise TensorFlowError(INVALID_ARGUMENT, "Missing ModelSpec")
        if not request.metadata_field:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                "GetModelMetadataRequest must specify at least one "
                "metadata_field",
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise TensorFlowError(
                    INVALID_ARGUMENT, f"Metadata field {field} is not supported"
                )
        version = self.model.version(request.model_spec)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number
        response.metadata["signature_def"].Pack(
            get_model_metadata_pb2.SignatureDefMap(
                signature_def=version.signatures
            )
        )
        return response


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """States of one model's versions."""

    def __init__(self, model):
        self.model = model

    @answering
    def GetModelStatus(self, request):
        if not request.HasField("model_spec"):
            raise TensorFlowError(INVALID_ARGUMENT, "Missing ModelSpec")
        return self.model.status(request.model_spec)


def grpc_server(port, model):
    """A server of both services, not yet started, and its port."""
    server = grpc.server(
        ThreadPoolExecutor(GRPC_THREADS),
        options=[
            ("grpc.max_receive_message_length", -1),
            # Another server's port is an error.
            ("grpc.so_reuseport", 0),
        ],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(model), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(
        ModelService(model), server
    )
    return server, server.add_insecure_port(f"127.0.0.1:{port}")


def main():
    """Serves until a signal ends it."""
    arguments, parent = parser().parse_args(), os.getppid()
    model = ServedModel(
        arguments.name, arguments.base_path, arguments.config, arguments.threads
    )
    model.poll()
    if not model.available:
        raise SystemExit(
            "Expected: a version that can be served, a folder with a number "
            f"as its name. Received: {arguments.base_path}, without any."
        )
    rest = RestServer(arguments.rest_port, model, arguments.cors)
    server, grpc_port = grpc_server(arguments.grpc_port, model)
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
