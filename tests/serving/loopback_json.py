"""JSON requests of the loopback server.

Rules and messages are those of TensorFlow Serving (`util/json_tensor.cc`,
2.20.0).
"""

import json

import numpy as np

from tests.serving.loopback_values import (
    Refused,
    is_object,
    read_array,
    shown,
)

# Message of Python's parser -> message of the server's parser.
PARSE_ERRORS = {
    "Expecting ',' delimiter": "Missing a comma or } after an object member.",
}


def parse(body):
    """Parse the JSON object of a request."""
    if not body:
        raise Refused("JSON Parse error: The document is empty")
    try:
        request = json.loads(body)
    except json.JSONDecodeError as error:
        reason = PARSE_ERRORS.get(error.msg, "Invalid value.")
        raise Refused(
            f"JSON Parse error: {reason} at offset: {error.pos}"
        ) from None
    if not isinstance(request, dict):
        raise Refused(f"JSON Value: {shown(request)} Is not object")
    if not isinstance(request.get("signature_name", ""), str):
        raise Refused(
            f"JSON Value: {shown(request)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return request


def read(request, inputs):
    """Return the arrays of a request, and whether it is in row format.

    Args:
        request: The result of `parse`.
        inputs: Name -> `TensorInfo` of the signature's inputs.
    """
    if "instances" in request and "inputs" in request:
        wrong = (
            "Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist "
        )
    elif "inputs" in request:
        return read_columns(request["inputs"], inputs), False
    elif "instances" not in request:
        raise Refused("Missing 'inputs' or 'instances' key")
    elif not isinstance(request["instances"], list):
        wrong = "Expecting 'instances' to be an list/array"
    elif not request["instances"]:
        wrong = "No values in 'instances' array"
    else:
        return read_rows(request["instances"], inputs), True
    raise Refused(f"JSON Value: {shown(request)} {wrong}")


def read_columns(value, inputs):
    """Read the arrays of the column format."""
    if not is_object(value):
        if len(inputs) > 1:
            raise Refused(
                "inputs is a plain value/list, but expecting an object as "
                "multiple input tensors required as per tensorinfo_map"
            )
        value = dict.fromkeys(inputs, value)
    for name in inputs:
        if name not in value:
            raise Refused(f"Missing named input: {name} in 'inputs' object.")
    return {
        name: read_array(value[name], info.dtype)
        for name, info in inputs.items()
    }


def read_rows(instances, inputs):
    """Read the arrays of the row format: a row has a value per input."""
    if not isinstance(instances[0], dict) and len(inputs) > 1:
        raise Refused(
            "instances is a plain list, but expecting list of objects as "
            "multiple input tensors required as per tensorinfo_map"
        )
    rows = {name: [] for name in inputs}
    named = is_object(instances[0])
    for number, instance in enumerate(instances):
        where = f"Failed to process element: {number} "
        if named and not is_object(instance):
            raise Refused(
                f"Expecting object but got list at item {number} of input list"
            )
        if not named and is_object(instance):
            raise Refused(
                f"Expecting value/list but got object at item {number} of "
                "input list"
            )
        for name, value in (instance if named else {"": instance}).items():
            key = f"key: {name} " if named else ""
            name = name if named else next(iter(inputs))
            try:
                add_row(rows, name, value, inputs)
            except Refused as error:
                raise Refused(
                    f"{where}{key}of 'instances' list. Error: "
                    f"INVALID_ARGUMENT: {error.message}"
                ) from None
        if named and instance.keys() != inputs.keys():
            raise Refused(
                f"{where}of 'instances' list. JSON object: {shown(instance)} "
                f"keys must be equal to: {','.join(sorted(inputs))}"
            )
    return {name: np.stack(arrays) for name, arrays in rows.items()}


def add_row(rows, name, value, inputs):
    """Append a value, which must have the shape of the previous values."""
    if name not in inputs:
        raise Refused(f"JSON object: does not have named input: {name}")
    array = read_array(value, inputs[name].dtype)
    first = rows[name][0] if rows[name] else array
    if array.size != first.size:
        raise Refused(
            f"Expecting tensor size: {first.size} but got: {array.size}"
        )
    if array.shape != first.shape:
        one, other = (
            "[" + ",".join(map(str, x.shape)) + "]" for x in (first, array)
        )
        raise Refused(f"Expecting shape {one} but got: {other}")
    rows[name].append(array)
