"""JSON requests and responses of the loopback server."""

import base64
import json

import numpy as np
import tensorflow as tf

from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT = 3
MALFORMED = ArithmeticError, AttributeError, LookupError, TypeError, ValueError
# Kind of an array -> types of its values in JSON.
TYPES = {"O": (str,), "f": (int, float), "i": (int,)}


def read(body, signatures):
    """Return the signature and arrays of a request, and whether it has rows.

    Raises:
        TensorFlowError: If the request is not one of a signature.
    """
    try:
        request = json.loads(body)
        name = request.get("signature_name") or "serving_default"
        inputs = signatures[name].inputs
        in_rows = "instances" in request
        columns = request["instances" if in_rows else "inputs"]
        if in_rows and is_object(columns[0]):
            (keys,) = {frozenset(row) for row in columns}
            if keys != set(inputs):
                raise ValueError(keys)
            columns = {key: [row[key] for row in columns] for key in keys}
        elif not is_object(columns):
            (only,) = inputs
            columns = {only: columns}
        arrays = {
            key: read_array(columns[key], info) for key, info in inputs.items()
        }
    except MALFORMED as error:
        raise TensorFlowError(INVALID_ARGUMENT, "invalid request") from error
    return signatures[name], arrays, in_rows


def write(arrays, in_rows):
    """Return the response with these outputs, in the format of the request."""
    columns = {name: array.tolist() for name, array in arrays.items()}
    answer = {"outputs": columns}
    if in_rows:
        rows = zip(*columns.values(), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in rows]
        answer = {"predictions": rows}
    # Bytes that are not UTF-8 stay unchanged, as in the real server.
    text = json.dumps(
        answer,
        ensure_ascii=False,
        default=lambda value: value.decode("utf-8", "surrogateescape"),
    )
    return text.encode("utf-8", "surrogateescape")


def is_object(value):
    """Test whether a value is an object other than `{"b64": …}`."""
    return isinstance(value, dict) and set(value) != {"b64"}


def read_array(column, info):
    """Convert nested lists to an array of the type of a `TensorInfo`."""
    dtype = np.dtype(tf.as_dtype(info.dtype).as_numpy_dtype)

    def read_value(value):
        if isinstance(value, list):
            return list(map(read_value, value))
        if dtype.kind == "O" and isinstance(value, dict):
            return base64.b64decode(value["b64"], validate=True)
        if type(value) not in TYPES[dtype.kind]:
            raise TypeError(value)
        return value.encode() if dtype.kind == "O" else value

    return np.array(read_value(column), dtype)
