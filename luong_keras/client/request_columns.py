"""Lines and options as the columns of a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

import numpy as np

# Option -> its type, and the value that leaves it as exported.
_OPTIONS = {
    "beam_size": (np.int32, 0),
    "n_best": (np.int32, 0),
    "rank": (np.int32, 0),
    "length_penalty": (np.float32, -1.0),
    "prefix": (object, ""),
    "replace_unknown": (np.int32, -1),
}
Option = Any  # one value, or one for each line
Lines = Iterable[str | bytes]


class SearchSettings(TypedDict, total=False):
    """How the server searches; what is left out, or None, is as exported.

    Each is one value, or one for each line.
    """

    # hypotheses, at most the exported maximum
    beam_size: Option
    # exponent of the length that divides a score
    length_penalty: Option
    # text that the translation must begin with
    prefix: Option
    # whether unknown words are replaced
    replace_unknown: Option


class NbestSettings(SearchSettings, total=False):
    """Those of the search, and how many translations are wanted."""

    # at most as many as exported
    n_best: Option


def text_column(
    lines: Lines, name: str = "lines", first: int = 0
) -> np.ndarray:
    """(B,) objects: `str` without lone surrogates, and `bytes`.

    Args:
        lines: B texts.
        name: of the argument, for the error.
        first: the place of the first one, likewise.
    """
    refuse_one_line(lines, name)
    lines = list(lines)
    texts = np.empty(len(lines), object)
    for place, line in enumerate(lines):
        if not isinstance(line, str | bytes):
            raise TypeError(
                f"Expected: `{name}` of str or bytes. Received: {line!r} at "
                f"place {first + place}."
            )
        if isinstance(line, str):
            line = line.encode("utf-16", "surrogatepass")
            line = line.decode("utf-16", "replace")
        texts[place] = line
    return texts


def refuse_one_line(lines: object, name: str = "lines") -> None:
    """A sentence is not the list of its letters."""
    if isinstance(lines, str | bytes):
        raise TypeError(
            f"Expected: `{name}`, a list of sentences. Received: the one "
            f"sentence {lines!r}. Put it into a list."
        )


def option_column(name: str, value: Option, count: int) -> np.ndarray:
    """(B,) values of an option."""
    kind, default = _OPTIONS[name]
    if value is None:
        value = default
    try:
        given = np.asarray(value, object if kind is object else None)
        array = given.astype(kind)
        kept = kind is object or _same_numbers(given, array)
    except (ValueError, OverflowError):
        kept, array = False, np.empty(0)
    if not kept or array.shape not in ((), (count,)):
        raise ValueError(
            f"Expected: `{name}` as one value or {count}, one for each line, "
            f"of type {np.dtype(kind)}. Received: {value!r}."
        )
    array = np.broadcast_to(array, (count,))
    return text_column(array, name) if kind is object else array


def _same_numbers(given: np.ndarray, array: np.ndarray) -> bool:
    """Whether nothing but the last digits was lost to another type."""
    if given.size == 0:
        return True
    return bool(
        given.dtype.kind in "biuf"
        and np.isfinite(array).all()
        and np.allclose(array, given, rtol=1e-6)
    )
