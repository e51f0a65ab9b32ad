"""JSON values in the refusals of the loopback server.

`JsonValueToDebugString` of TensorFlow Serving (json_tensor.cc, 2.20.0): lists
on one line, objects on several, and no value is begun behind 256 bytes.
"""

import contextlib
import math

from tests.serving.loopback_answers import line, quoted

LIMIT = 256


class Full(Exception):
    """The limit is reached."""


def shown(value):
    """A JSON value, or its beginning."""
    text = Text()
    with contextlib.suppress(Full):
        text.write(value, 0, b"")
    return bytes(text.written).decode("utf-8", "replace")


class Text:
    """What is written so far."""

    def __init__(self):
        self.written = bytearray()

    def add(self, part):
        """Adds a key, a value or a bracket."""
        if len(self.written) >= LIMIT:
            raise Full
        self.written += part

    def write(self, value, depth, before):
        """Adds a value that is inside that many objects and lists."""
        if isinstance(value, dict):
            self.add(before + b"{")
            for number, (key, member) in enumerate(value.items()):
                comma = b"," if number else b""
                self.add(comma + line(depth + 1) + string(key))
                self.write(member, depth + 1, b": ")
            self.add((line(depth) if value else b"") + b"}")
        elif isinstance(value, list):
            self.add(before + b"[")
            for number, element in enumerate(value):
                self.write(element, depth + 1, b", " if number else b"")
            self.add(b"]")
        elif isinstance(value, float) and not math.isfinite(value):
            self.add(before)
            raise Full
        else:
            self.add(before + scalar(value))


def scalar(value):
    """A string, number, truth value or null."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, float):
        return number_text(value).encode()
    names = {None: b"null", True: b"true", False: b"false"}
    return str(value).encode() if type(value) is int else names[value]


def number_text(value):
    """A number with a point: all digits up to 21 before it."""
    if 1e16 <= abs(value) < 1e21:
        return f"{value:.1f}"
    return repr(value).replace("e+", "e").replace("e-0", "e-")


def string(value):
    """A string with its quotation marks."""
    return quoted(value.encode("utf-8", "replace"))
