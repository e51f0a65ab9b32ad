"""Times as people write them on a command line."""

import re

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def seconds(text: str) -> float:
    """The seconds of a duration such as `3h` or `1h30m`.

    Raises:
        ValueError: for another text.

    Example:
        >>> seconds("1h30m")
        5400.0
    """
    if not re.fullmatch(rf"(?:{_PARTS.pattern})+", text):
        raise ValueError(
            "Expected: a duration of days, hours, minutes or seconds, such as "
            f"3h, 90m or 1h30m. Received: {text!r}."
        )
    return sum(float(n) * _UNITS[unit] for n, unit in _PARTS.findall(text))
