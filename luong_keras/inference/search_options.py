"""Search options of each sentence, and columns of them.

Here once for the translator, the signatures of an export, the client and the
commands. Neither Keras nor TensorFlow is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypedDict

import numpy as np


class SearchOption(NamedTuple):
    """One number or text for each sentence.

    Attributes:
        kind: `"int32"`, `"float32"` or `"string"`.
        unset: what leaves it as configured, as does anything below 0, and
            NaN.
        low: what is below, and not below 0, becomes this.
        high: what is above becomes this.
    """

    kind: str
    unset: int | float | str
    low: float = 0
    high: float = 2**31 - 1

    @property
    def type(self) -> type:
        """The NumPy type of a column."""
        return {"int32": np.int32, "float32": np.float32}.get(self.kind, object)


# The names are those of `DecodingConfig`, where it has them.
SEARCH_OPTIONS = {
    # hypotheses, at most the largest that there is
    "beam_size": SearchOption("int32", 0),
    # how many translations are wanted, 0 for all; samples: how many are drawn
    "n_best": SearchOption("int32", 0),
    # the exponent; beyond, the longest hypotheses win, whatever they say
    "length_penalty": SearchOption("float32", -1.0, high=2.0),
    # words that the translation begins with
    "prefix": SearchOption("string", ""),
    # 1 to replace unknown words, 0 to leave them
    "replace_unknown": SearchOption("int32", -1, high=1),
    # its strength
    "coverage_penalty": SearchOption("float32", -1.0, high=10.0),
    # no translation has this many words in a row twice; 0: no such limit
    "no_repeat_ngram": SearchOption("int32", -1, high=8),
    # above 0: samples at this temperature; 0: the best hypotheses
    "temperature": SearchOption("float32", -1.0, high=10.0),
    # samples: from how many most probable words; 0 for all
    "top_k": SearchOption("int32", -1),
    # samples: from the fewest words with this probability together
    "top_p": SearchOption("float32", -1.0, low=1e-6, high=1.0),
    # of samples; the same sentence with the same seed draws the same
    "seed": SearchOption("int32", -1),
    # phrases that the translation has, a tab between two of them
    "required": SearchOption("string", ""),
    # phrases that the translation does not have, likewise
    "forbidden": SearchOption("string", ""),
}
# Those of a beam. Signatures with these alone were there before the others.
BEAM_OPTIONS = tuple(SEARCH_OPTIONS)[:5]
# Which translation of a sentence is looked at chooses no search.
_COLUMNS = {**SEARCH_OPTIONS, "rank": SearchOption("int32", 0)}
LEAST_TEMPERATURE = 0.01  # below, the most probable word is drawn anyway
Option = Any  # one value, or one for each line
Lines = Iterable[str | bytes]


class BeamSettings(TypedDict, total=False):
    """Options of a beam; None, or a missing one, leaves the setting.

    Each is one value, or one for each line.
    """

    # hypotheses, at most the configured maximum
    beam_size: Option
    # exponent of the length that divides a score
    length_penalty: Option
    # text that the translation must begin with
    prefix: Option
    # whether unknown words are replaced
    replace_unknown: Option


class SearchSettings(BeamSettings, total=False):
    """Options of any search."""

    # strength of the penalty for source words without attention
    coverage_penalty: Option
    # no translation has this many words in a row twice
    no_repeat_ngram: Option
    # of samples; 0 for a beam
    temperature: Option
    # most probable words that samples are drawn from
    top_k: Option
    # the probability of the words that samples are drawn from
    top_p: Option
    # of samples
    seed: Option
    # phrases that the translation must have, a tab between two
    required: Option
    # phrases that it must not have
    forbidden: Option


class NbestSettings(SearchSettings, total=False):
    """Those of the search, and how many translations are wanted."""

    # at most as many as configured
    n_best: Option


def text_column(lines: Lines, name: str, first: int = 0) -> np.ndarray:
    """(B,) objects: `str` without lone surrogates, and `bytes`.

    Args:
        lines: B texts.
        name: of the argument, for the error.
        first: the place of the first of them.

    Raises:
        TypeError: for what is no text, with its place.
        ValueError: for one with lone surrogates, likewise.
    """
    refuse_one_line(lines, name)
    lines = list(lines)
    texts = np.empty(len(lines), object)
    for place, line in enumerate(lines):
        received = f"Received: {line!r:.200} at place {first + place}."
        if not isinstance(line, str | bytes):
            raise TypeError(f"Expected: `{name}` of str or bytes. {received}")
        if isinstance(line, str) and not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"Expected: `{name}` that can be written as UTF-8, "
                    f"without lone surrogates. {received}"
                ) from error
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
    option = _COLUMNS[name]
    kind = option.type
    if value is None:
        value = option.unset
    try:
        given = np.asarray(value, object if kind is object else None)
        array: np.ndarray = given.astype(kind)
        kept = kind is object or _same_numbers(given, array)
    except (ValueError, OverflowError):
        kept, array = False, np.empty(0, object)
    if not kept or array.shape not in ((), (count,)):
        raise ValueError(
            f"Expected: `{name}` as one value or {count}, one for each line, "
            f"of type {np.dtype(kind)}. Received: {value!r}."
        )
    array = np.broadcast_to(array, (count,))
    return text_column(array, name) if kind is object else array


def _same_numbers(given: np.ndarray, array: np.ndarray) -> bool:
    """Whether two arrays are equal but for rounding in a conversion."""
    if given.size == 0:
        return True
    return bool(
        given.dtype.kind in "biuf"
        and np.isfinite(array).all()
        and np.allclose(array, given, rtol=1e-6)
    )
