"""Conversion of JSON values to arrays in the loopback server.

Rules and messages are those of TensorFlow Serving (`util/json_tensor.cc`,
2.20.0).
"""

import base64
import binascii
import json

import numpy as np
from tensorflow.core.framework import types_pb2

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_version import INVALID_ARGUMENT

# Type of TensorFlow -> type of NumPy and name in a message.
DTYPES = {
    types_pb2.DT_STRING: (np.dtype(object), "string"),
    types_pb2.DT_FLOAT: (np.dtype("float32"), "float"),
    types_pb2.DT_INT32: (np.dtype("int32"), "int32"),
}
TYPE_NAMES = {
    dict: "Object",
    list: "Array",
    str: "String",
    int: "Number",
    float: "Number",
    type(None): "Null",
}


class Refused(TensorFlowError):
    """Error of a request that the server does not accept."""

    def __init__(self, message):
        super().__init__(INVALID_ARGUMENT, message)


def shown(value):
    """Return the beginning of a JSON value, for a message."""
    return json.dumps(value)[:256]


def read_array(value, dtype):
    """Convert nested lists, whose first elements determine the shape."""
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    values = list(leaves(value, shape, 0, dtype))
    array = np.empty(len(values), DTYPES[dtype][0])
    array[:] = values
    return array.reshape(shape)


def leaves(value, shape, level, dtype):
    """Yield the values of nested lists, or raise if a length differs."""
    if not isinstance(value, list):
        if level != len(shape):
            raise Refused(
                f"JSON Value: {shown(value)} found at incorrect level: "
                f"{level + 1} in the JSON DOM. Expected at level: {len(shape)}"
            )
        yield read_value(value, dtype)
        return
    if level >= len(shape):
        raise Refused(
            f"Encountered list at unexpected level: {level} "
            f"expected < {len(shape)}"
        )
    if len(value) != shape[level]:
        raise Refused(
            f"Encountered list at unexpected size: {len(value)} at level: "
            f"{level} expected size: {shape[level]}"
        )
    for element in value:
        yield from leaves(element, shape, level + 1, dtype)


def read_value(value, dtype):
    """Convert a number, or a string to bytes."""
    numpy_type, name = DTYPES[dtype]
    kind = type(value)
    if dtype == types_pb2.DT_STRING and kind is dict:
        return from_base64(value)
    if dtype == types_pb2.DT_STRING and kind is str:
        return value.encode()
    if numpy_type.kind == "i" and kind is int:
        limits = np.iinfo(numpy_type)
        if limits.min <= value <= limits.max:
            return value
    if numpy_type.kind == "f" and kind in (int, float):
        return value
    raise Refused(
        f"JSON Value: {shown(value)} Type: "
        f"{str(value) if kind is bool else TYPE_NAMES[kind]} is not of "
        f"expected type: {name}"
    )


def from_base64(value):
    """Return the bytes of `{"b64": …}`."""
    if is_object(value):
        raise Refused(
            f"JSON Value: {shown(value)} not formatted correctly for base64 "
            "data"
        )
    try:
        return base64.b64decode(value["b64"], validate=True)
    except binascii.Error:
        raise Refused("Unable to base64 decode") from None


def is_object(value):
    """Test whether a value is an object other than `{"b64": …}`."""
    return isinstance(value, dict) and not (
        len(value) == 1 and isinstance(value.get("b64"), str)
    )
