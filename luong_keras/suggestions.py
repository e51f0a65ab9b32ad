"""Suggestions for a misspelled name."""

import difflib
from collections.abc import Iterable

# Less alike, and most hints are of something else.
_CUTOFF = 0.75


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The question for the end of a message, or nothing.

    Args:
        name: what was given.
        names: what there is; of several parts, as `model.units`, the last one
            may be meant.

    Example:
        >>> did_you_mean("trian", ["train", "translate"])
        ' Did you mean train?'
        >>> did_you_mean("unit", ["model.units", "model.dropout"])
        ' Did you mean model.units?'
        >>> did_you_mean("xyz", ["train", "translate"])
        ''
    """
    whole = {full: full for full in names}
    ends = {full.rpartition(".")[2]: full for full in reversed(whole)}
    for given, known in ((name, whole), (name.rpartition(".")[2], ends)):
        near = difflib.get_close_matches(given, known, n=1, cutoff=_CUTOFF)
        if near:
            return f" Did you mean {known[near[0]]}?"
    return ""
