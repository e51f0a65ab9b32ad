"""JSON responses of the batching server, byte for byte.

`MakeJsonFromTensors` of TensorFlow Serving (json_tensor.cc, 2.20.0) writes
with RapidJSON's pretty writer, four spaces per level. The column format has a
line per value, the row format has lists on one line. The order of the outputs
is undefined there; here it is that of the signature.
"""

import math

import numpy as np
import tensorflow as tf

from speed.server_numbers import decimals

ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(char): f"\\{letter}"
    for char, letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)
}


def write(arrays, in_rows):
    """Return the response with these outputs, in the format of the request."""
    return in_row_format(arrays) if in_rows else in_columns(arrays)


def in_columns(arrays):
    """Write the column format: one array per output."""
    if len(arrays) == 1:
        (array,) = arrays.values()
        return members({"outputs": written(array, 1)}, 0)
    outputs = {name: written(array, 2) for name, array in arrays.items()}
    return members({"outputs": members(outputs, 1)}, 0)


def in_row_format(arrays):
    """Write the row format: an object per row, or the values of one output."""
    columns = {name: written_rows(array) for name, array in arrays.items()}
    if len(arrays) == 1:
        (values,) = columns.values()
        # The real writer ends its one-line mode before it closes this list.
        rows = b"[" + b", ".join(values) + b"\n    ]"
    else:
        rows = b",".join(
            b"\n        " + members(dict(zip(columns, row, strict=True)), 2)
            for row in zip(*columns.values(), strict=True)
        )
        rows = b"[" + rows + b"\n    ]"
    return members({"predictions": rows}, 0)


def written(array, depth):
    """Write an array inside `depth` objects and lists, one value per line."""
    joined = innermost(array, separator(depth + array.ndim))
    return nested(iter(joined), array.shape, depth)


def written_rows(array):
    """Return one text per row of an array, each on one line."""
    if array.ndim == 1:
        return texts(array)
    joined = iter(innermost(array, separator(None)))
    return [nested(joined, array.shape[1:], None) for _ in array]


def nested(joined, shape, depth):
    """Put the texts of innermost lists into lists of this shape.

    Args:
        joined: Iterator over the texts.
        shape: Sizes of the lists.
        depth: Number of objects and lists around them; None to write the
            lists on one line.
    """
    inner = None if depth is None else depth + 1
    if len(shape) == 1:
        inside = next(joined)
    else:
        inside = separator(inner).join(
            nested(joined, shape[1:], inner) for _ in range(shape[0])
        )
    if not shape[0]:
        return b"[]"
    if depth is None:
        return b"[" + inside + b"]"
    return b"[" + line(inner) + inside + line(depth) + b"]"


def separator(depth):
    """Return the separator of values at a depth, or on one line if None."""
    return b", " if depth is None else b"," + line(depth)


def innermost(array, separator):
    """Return the texts of the innermost lists, without brackets."""
    *outer, inner = array.shape
    if array.dtype == np.float32 and array.size:
        joined = tf.strings.reduce_join(
            tf.reshape(decimals(array.ravel()), [-1, inner]),
            axis=-1,
            separator=separator,
        )
        return joined.numpy().tolist()
    flat = texts(array.ravel())
    return [
        separator.join(flat[i * inner : (i + 1) * inner])
        for i in range(math.prod(outer))
    ]


def texts(flat):
    """Return the texts of a flat array."""
    if flat.dtype == np.float32:
        return decimals(flat).numpy().tolist() if flat.size else []
    if flat.dtype == bool:
        return np.where(flat, b"true", b"false").tolist()
    if flat.dtype != object:
        return [b"%d" % number for number in flat.tolist()]
    return list(map(quoted, flat))


def members(values, depth):
    """Write an object inside `depth` others from the texts of its values."""
    inside = (b"," + line(depth + 1)).join(
        quoted(name.encode()) + b": " + value for name, value in values.items()
    )
    return b"{" + line(depth + 1) + inside + line(depth) + b"}"


def line(depth):
    """Return a line break with the indentation of a depth."""
    return b"\n" + b"    " * depth


def quoted(value):
    """Return a JSON string; bytes that are not UTF-8 stay unchanged."""
    escaped = value.decode("latin-1").translate(ESCAPES)
    return f'"{escaped}"'.encode("latin-1")
