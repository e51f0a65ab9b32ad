"""Suggestions for a misspelled name."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The question for the end of a message, or nothing.

    Args:
        name: what was given.
        names: what there is.

    Example:
        >>> did_you_mean("trian", ["train", "translate"])
        ' Did you mean train?'
        >>> did_you_mean("xyz", ["train", "translate"])
        ''
    """
    near = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {near[0]}?" if near else ""
