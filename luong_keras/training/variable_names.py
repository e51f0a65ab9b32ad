"""Names for the variables of a snapshot, and their comparison."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

# What Keras adds to a name that was used before in the process.
_COUNTER = re.compile(r"_\d+(?=[/_]|$)")


def named(
    groups: Mapping[str, Sequence[keras.Variable]],
) -> dict[str, keras.Variable]:
    """Name variables by their group and path.

    Args:
        groups: Sequences of variables by the name of the group.

    Returns:
        The variables by `group/path`.
    """
    return unique(
        (f"{group}/{variable.path}", variable)
        for group, variables in groups.items()
        for variable in variables
    )


def without_counters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Take the counters out of the names, keeping the order.

    Keras numbers the names that it gives in a process, so the second model
    built by the same code has other ones.

    Args:
        values: Anything by name.

    Returns:
        The same values by plainer names.

    Example:
        >>> without_counters({"dense_3/kernel": "a", "dense_4/kernel": "b"})
        {'dense/kernel': 'a', 'dense/kernel#2': 'b'}
    """
    return unique(
        (_COUNTER.sub("", name.split("#")[0]), value)
        for name, value in values.items()
    )


def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict; the second of a name becomes `name#2` and so on.

    Args:
        pairs: Names and values.

    Returns:
        As many entries as there are pairs.
    """
    counts: dict[str, int] = {}
    result = {}
    for name, value in pairs:
        counts[name] = counts.get(name, 0) + 1
        suffix = f"#{counts[name]}" if counts[name] > 1 else ""
        result[name + suffix] = value
    return result


def check_match(
    saved: Mapping[str, np.ndarray],
    variables: Mapping[str, keras.Variable],
    path: str | os.PathLike[str],
) -> None:
    """Raise unless names and shapes agree.

    Args:
        saved: The arrays of a snapshot.
        variables: The variables of a model.
        path: Where the snapshot came from.

    Raises:
        ValueError: With all the differences.
    """
    problems = [
        ("not in the snapshot", sorted(set(variables) - set(saved))),
        ("only in the snapshot", sorted(set(saved) - set(variables))),
        (
            "of another shape",
            [
                f"{name} {tuple(saved[name].shape)} in the snapshot, "
                f"{tuple(variables[name].shape)} in the model"
                for name in sorted(set(saved) & set(variables))
                if tuple(saved[name].shape) != tuple(variables[name].shape)
            ],
        ),
    ]
    lines = [
        f"\n  {what}: {', '.join(names)}" for what, names in problems if names
    ]
    if lines:
        raise ValueError(
            f"The snapshot {str(path)!r} belongs to another model. Received "
            f"variables{''.join(lines)}\nBuild and compile the model as the "
            "run's configuration says, or begin a new run folder."
        )
