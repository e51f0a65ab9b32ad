"""JSON answers of the loopback server, byte for byte.

`MakeJsonFromTensors` of TensorFlow Serving (json_tensor.cc, 2.20.0) writes
with RapidJSON's pretty writer, four spaces a level: a line for each value in
the column format, lists on one line in the row format. Outputs of different
names come in no certain order there; here in that of the signature.
"""

import base64
import math

import numpy as np
import tensorflow as tf

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_numbers import ALL_DIGITS, decimals

INVALID_ARGUMENT = 3
ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(char): f"\\{letter}"
    for char, letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)
}


def write(arrays, in_rows):
    """The answer with these outputs, in the format of its request."""
    if not arrays:
        raise TensorFlowError(
            INVALID_ARGUMENT, "Cannot convert empty tensor map to JSON"
        )
    return in_row_format(arrays) if in_rows else in_columns(arrays)


def in_columns(arrays):
    """The column format: an array for each output."""
    lists = Lists(single_line=False)
    if len(arrays) == 1:
        ((name, array),) = arrays.items()
        return members({"outputs": lists.write(name, array, 1)}, 0)
    outputs = {
        name: lists.write(name, array, 2) for name, array in arrays.items()
    }
    return members({"outputs": members(outputs, 1)}, 0)


def in_row_format(arrays):
    """The row format: an object for each row, or a value of one output."""
    size = batch_size(arrays)
    lists = Lists(single_line=True)
    depth = 2 if len(arrays) == 1 else 3
    columns = {
        name: lists.write_rows(name, array, depth)
        for name, array in arrays.items()
    }
    if len(arrays) == 1:
        (values,) = columns.values()
        # Lists are on one line only while the rows are written.
        rows = b"[" + b", ".join(values) + b"\n    ]"
    else:
        rows = b",".join(
            b"\n        " + members(dict(zip(columns, row, strict=True)), 2)
            for row in zip(*columns.values(), strict=True)
        )
        rows = b"[" + rows + b"\n    ]"
    return members({"predictions": rows if size else b"[]"}, 0)


def batch_size(arrays):
    """Rows of all outputs."""
    size = None
    for name, array in arrays.items():
        if not array.ndim:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Tensor name: {name} has no shape information ",
            )
        if size is not None and size != len(array):
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Tensor name: {name} has inconsistent batch size: "
                f"{len(array)} expecting: {size}",
            )
        size = len(array)
    return size


class Lists:
    """Writes arrays as nested lists, on one line or a line for each value."""

    def __init__(self, single_line):
        self._single_line = single_line

    def write(self, name, array, depth):
        """An output's array, inside that many objects and lists."""
        depth_of_values = depth + array.ndim
        if not array.ndim:
            return texts(name, array.reshape(1), depth)[0]
        separator = self._separator(depth_of_values)
        joined = iter(innermost(name, array, separator, depth_of_values))
        return self._nested(joined, array.shape, depth)

    def write_rows(self, name, array, depth):
        """A text for each row of an array."""
        if array.ndim == 1:
            return texts(name, array, depth)
        depth_of_values = depth + array.ndim - 1
        separator = self._separator(depth_of_values)
        joined = iter(innermost(name, array, separator, depth_of_values))
        return [
            self._nested(joined, array.shape[1:], depth)
            for _ in range(len(array))
        ]

    def _nested(self, joined, shape, depth):
        if len(shape) == 1:
            inside = next(joined)
        else:
            inside = self._separator(depth + 1).join(
                self._nested(joined, shape[1:], depth + 1)
                for _ in range(shape[0])
            )
        if not shape[0]:
            return b"[]"
        if self._single_line:
            return b"[" + inside + b"]"
        return b"[" + line(depth + 1) + inside + line(depth) + b"]"

    def _separator(self, depth):
        return b", " if self._single_line else b"," + line(depth)


def innermost(name, array, separator, depth):
    """Texts of the innermost lists, without brackets."""
    *outer, inner = array.shape
    if array.dtype.name in ALL_DIGITS and array.size:
        joined = tf.strings.reduce_join(
            tf.reshape(decimals(array.ravel()), [-1, inner]),
            axis=-1,
            separator=separator,
        )
        return joined.numpy().tolist()
    flat = texts(name, array.ravel(), depth)
    return [
        separator.join(flat[i * inner : (i + 1) * inner])
        for i in range(math.prod(outer))
    ]


def texts(name, flat, depth):
    """Texts of values, inside that many objects and lists."""
    if flat.dtype.name in ALL_DIGITS:
        return decimals(flat).numpy().tolist() if flat.size else []
    if flat.dtype == bool:
        return np.where(flat, b"true", b"false").tolist()
    if flat.dtype != object:
        return [b"%d" % number for number in flat.tolist()]
    if name.endswith("_bytes"):
        return [
            members({"b64": quoted(base64.b64encode(value))}, depth)
            for value in flat
        ]
    return list(map(quoted, flat))


def members(values, depth):
    """An object inside that many others: name -> text of the value."""
    inside = (b"," + line(depth + 1)).join(
        quoted(name.encode()) + b": " + value for name, value in values.items()
    )
    return b"{" + line(depth + 1) + inside + line(depth) + b"}"


def line(depth):
    """The beginning of a line inside that many objects and lists."""
    return b"\n" + b"    " * depth


def quoted(value):
    """A string; bytes that are no UTF-8 are left as they are."""
    escaped = value.decode("latin-1").translate(ESCAPES)
    return f'"{escaped}"'.encode("latin-1")
