"""Suggestions for a misspelled name."""

import difflib
from collections.abc import Iterable

# With a lower cutoff most hints would be wrong.
_CUTOFF = 0.75


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question for the end of a message, or an empty string.

    Args:
        name: The unknown name.
        names: The known names; those of several parts, such as `model.units`,
            are also compared by their last part.

    Example:
        >>> did_you_mean("trian", ["train", "translate"])
        ' Did you mean train?'
        >>> did_you_mean("unit", ["model.units", "model.dropout"])
        ' Did you mean model.units?'
        >>> did_you_mean("xyz", ["train", "translate"])
        ''
    """
    full_names = {full: full for full in names}
    endings = {full.rpartition(".")[2]: full for full in reversed(full_names)}
    for word, known in ((name, full_names), (name.rpartition(".")[2], endings)):
        matches = difflib.get_close_matches(word, known, n=1, cutoff=_CUTOFF)
        if matches:
            return f" Did you mean {known[matches[0]]}?"
    return ""
