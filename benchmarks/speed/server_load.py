"""Requests to a server, like those of a client in any language."""

import http.client
import json
import threading
from urllib.parse import urlsplit


def rest_rows(server):
    """Send `instances`, one per row; the response is one line of JSON."""
    return _rest(server, lambda lines: {"instances": lines})


def rest_columns(server):
    """Send `inputs`, one list each; the response has a number per line."""
    return _rest(server, lambda lines: {"inputs": lines})


def rest_alignments(server):
    """Request the words and weights of the best translations."""
    options = {"rank": 0, "beam_size": 0, "length_penalty": -1.0}
    options |= {"prefix": "", "replace_unknown": -1}
    return _rest(
        server,
        lambda lines: {
            "signature_name": "align",
            "instances": [{"text": line, **options} for line in lines],
        },
    )


def grpc_default(server):
    """Send a PredictRequest for the translations and their status."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import (
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    channel = grpc.insecure_channel(server.grpc_target)
    predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
    name = server.rest_url.rpartition("/")[2]

    def send(lines):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(lines, tf.string))
        request.output_filter.extend(["translation", "status"])
        return predict(request).SerializeToString()

    return send


# Name of a form -> function from a server to a sender, which sends lines and
# returns the bytes of the response.
FORMS = {
    "rows": rest_rows,
    "columns": rest_columns,
    "alignments": rest_alignments,
    "grpc": grpc_default,
}


def answer_bytes(server, form, lines):
    """Return the size of a response in bytes."""
    return len(FORMS[form](server)(lines))


def _rest(server, body_of):
    """Return a sender with one connection per thread."""
    address = urlsplit(server.rest_url)
    own = threading.local()

    def send(lines):
        if not hasattr(own, "connection"):
            own.connection = http.client.HTTPConnection(address.netloc)
        body = json.dumps(body_of(lines)).encode()
        own.connection.request("POST", f"{address.path}:predict", body)
        response = own.connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(content[:300])
        return content

    return send
