"""JSON values to arrays and back, as the server converts them.

The rules and the words of the refusals are those of TensorFlow Serving
(`util/json_tensor.cc`), so that a client meets the same server in a test.
"""

import base64
import binascii
import json

import numpy as np
from tensorflow.core.framework import types_pb2

from luong_keras.serving.saved_model_session import TensorFlowError
from tests.serving.loopback_version import INVALID_ARGUMENT

# TensorFlow's type -> NumPy's type and its name in a refusal.
DTYPES = {
    types_pb2.DT_STRING: (np.dtype(object), "string"),
    types_pb2.DT_FLOAT: (np.dtype("float32"), "float"),
    types_pb2.DT_DOUBLE: (np.dtype("float64"), "double"),
    types_pb2.DT_INT32: (np.dtype("int32"), "int32"),
    types_pb2.DT_INT64: (np.dtype("int64"), "int64"),
    types_pb2.DT_BOOL: (np.dtype(bool), "bool"),
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
    """A request that is not as the server expects it."""

    def __init__(self, message):
        super().__init__(INVALID_ARGUMENT, message)


def read_array(value, dtype):
    """The array of nested lists, all of the shape of their first."""
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
    """Values of nested lists; a list of another length is refused."""
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
    """One number, truth value or string as bytes."""
    numpy_type, name = DTYPES[dtype]
    kind = type(value)
    if dtype == types_pb2.DT_STRING and kind is dict:
        return from_base64(value)
    if dtype == types_pb2.DT_STRING and kind is str:
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise Refused(
                "JSON Parse error: The surrogate pair in string is invalid."
            ) from None
    if numpy_type.kind == "b" and kind is bool:
        return value
    if numpy_type.kind == "i" and kind is int:
        limits = np.iinfo(numpy_type)
        if limits.min <= value <= limits.max:
            return value
    if numpy_type.kind == "f" and kind in (int, float):
        exact = 2 ** np.finfo(numpy_type).nmant * 2 - 1
        largest = exact if kind is int else float(np.finfo(numpy_type).max)
        if abs(value) > largest and abs(value) != np.inf:
            raise Refused(
                f"Cannot convert JSON value: {shown(value)} to {name} "
                "without loss of precision."
            )
        return value
    raise Refused(
        f"JSON Value: {shown(value)} Type: "
        f"{str(value) if kind is bool else TYPE_NAMES[kind]} is not of "
        f"expected type: {name}"
    )


def from_base64(value):
    """The bytes of `{"b64": …}`."""
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
    """Whether it is an object that stands for no base64 string."""
    return isinstance(value, dict) and not (
        len(value) == 1 and isinstance(value.get("b64"), str)
    )


def shown(value):
    """A JSON value in a refusal."""
    return json.dumps(value, indent=4, ensure_ascii=False)


def write_array(name, array):
    """Nested lists of JSON values of an output."""
    flat = array.ravel()
    if array.dtype == object and name.endswith("_bytes"):
        flat = [{"b64": base64.b64encode(x).decode()} for x in flat]
    elif array.dtype == object:
        flat = [x.decode("utf-8", "surrogateescape") for x in flat]
    elif array.dtype == np.float32:
        flat = decimals(flat)
    else:
        flat = flat.tolist()
    nested = np.empty(array.size, object)
    nested[:] = flat
    return nested.reshape(array.shape).tolist()


def decimals(flat):
    """Numbers of 6 digits, or of 9 where 6 are another float32."""
    short = [float(f"{x:.6g}") for x in flat.tolist()]
    same = np.asarray(short, "float32") == flat
    return [
        x if is_same else float(f"{exact:.9g}")
        for x, exact, is_same in zip(short, flat.tolist(), same, strict=True)
    ]
