"""Search options per sentence, and columns of options.

The translator, the signatures of an export and the commands share this module.
It needs neither Keras nor TensorFlow.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

import numpy as np


class SearchOption(NamedTuple):
    """A search option, one number or text per sentence.

    Attributes:
        kind: NumPy type of a column: int32, float32, or object for text.
        unset: The value that keeps the configured setting; in an export,
            other numbers below 0 and NaN also keep it.
        low: Lower limit; an export raises values between 0 and it to it.
        high: Upper limit, to which an export reduces larger values.
    """

    kind: type
    unset: int | float | str
    low: float = 0
    high: float = 2**31 - 1


# Options that are also settings of `DecodingConfig` have the same names.
SEARCH_OPTIONS = {
    # number of hypotheses, at most the configured maximum
    "beam_size": SearchOption(np.int32, 0),
    # number of translations to return, or of samples to draw; 0 for all
    "n_best": SearchOption(np.int32, 0),
    # exponent of the length; above the limit, the longest hypotheses win
    "length_penalty": SearchOption(np.float32, -1.0, high=2.0),
    # words that the translation begins with
    "prefix": SearchOption(object, ""),
    # 1 to replace unknown words, 0 to leave them
    "replace_unknown": SearchOption(np.int32, -1, high=1),
    # strength of the coverage penalty
    "coverage_penalty": SearchOption(np.float32, -1.0, high=10.0),
    # no translation repeats an n-gram of this many words; 0 for no limit
    "no_repeat_ngram": SearchOption(np.int32, -1, high=8),
    # above 0: samples at this temperature; 0: the best hypotheses
    "temperature": SearchOption(np.float32, -1.0, high=10.0),
    # number of most probable words to draw samples from; 0 for all
    "top_k": SearchOption(np.int32, -1),
    # total probability of the smallest set of words to draw samples from
    "top_p": SearchOption(np.float32, -1.0, low=1e-6, high=1.0),
    # seed of samples; equal sentences with equal seeds draw equal samples
    "seed": SearchOption(np.int32, -1),
    # phrases that the translation must contain, separated by tabs
    "required": SearchOption(object, ""),
    # phrases that the translation must not contain, separated by tabs
    "forbidden": SearchOption(object, ""),
}
# The options of a beam, which are all that the older signatures have; the first
# ones of `SEARCH_OPTIONS`.
BEAM_OPTIONS = (
    "beam_size",
    "n_best",
    "length_penalty",
    "prefix",
    "replace_unknown",
)
Option = Any  # one value, or one per line
Lines = Iterable[str | bytes]


class SearchSettings(TypedDict, total=False):
    """Options of any search.

    Each is one value, or one per line; None or no value keeps the setting.
    """

    # number of hypotheses, at most the configured maximum
    beam_size: Option
    # exponent of the length that divides a score
    length_penalty: Option
    # text that the translation must begin with
    prefix: Option
    # whether unknown words are replaced
    replace_unknown: Option
    # strength of the penalty for source words without attention
    coverage_penalty: Option
    # no translation repeats an n-gram of this many words
    no_repeat_ngram: Option
    # temperature of samples; 0 for a beam
    temperature: Option
    # number of most probable words that samples are drawn from
    top_k: Option
    # total probability of the words that samples are drawn from
    top_p: Option
    # seed of samples
    seed: Option
    # phrases that the translation must contain, separated by tabs
    required: Option
    # phrases that the translation must not contain
    forbidden: Option


class NbestSettings(SearchSettings, total=False):
    """Options of any search, and the number of translations."""

    # number of translations to return, at most as many as the search keeps
    n_best: Option


def text_column(lines: Lines, name: str, first: int = 0) -> np.ndarray:
    """Return (B,) objects, `bytes` and `str` without lone surrogates.

    Args:
        lines: B texts.
        name: The name of the argument, for the error.
        first: The place of the first text.

    Raises:
        TypeError: For an object that is not text, with its place.
        ValueError: For a text with lone surrogates, with its place.
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


def pair_columns(sources: Lines, targets: Lines) -> tuple[list, list]:
    """Check sentence pairs, and return their sources and targets.

    Raises:
        TypeError: As in `text_column`.
        ValueError: As in `text_column`, and for different numbers of texts.
    """
    sources = [*text_column(sources, "sources")]
    targets = [*text_column(targets, "targets")]
    if len(sources) != len(targets):
        raise ValueError(
            "Expected: as many targets as sources. Received: "
            f"{len(targets)} and {len(sources)}."
        )
    return sources, targets


def refuse_one_line(lines: object, name: str = "lines") -> None:
    """Check that `lines` is a list, and no string, a sequence of letters."""
    has_items = hasattr(lines, "__iter__") or hasattr(lines, "__getitem__")
    is_one = isinstance(lines, str | bytes) or not has_items
    if not is_one and getattr(lines, "shape", None) != ():
        return
    raise TypeError(
        f"Expected: `{name}`, a list of sentences. Received: the one "
        f"{type(lines).__name__} {lines!r}. Put it into a list."
    )


def check_single_values(options: Mapping[str, Option]) -> None:
    """Check that each option is one value, for lines of an unknown number."""
    for name, value in options.items():
        if np.shape(np.asarray(value)) != ():
            raise ValueError(
                f"Expected: one value of `{name}` for all lines, whose number "
                f"is unknown. Received: {value!r:.200}."
            )


def option_column(name: str, value: Option, count: int) -> np.ndarray:
    """Return the (B,) values of an option."""
    option = SEARCH_OPTIONS[name]
    dtype = option.kind
    try:
        values = np.asarray(value, object)
        values = np.where(values == np.array(None), option.unset, values)
        if dtype is not object:
            values = np.asarray(values.tolist())
        column: np.ndarray = values.astype(dtype)
        is_exact = dtype is object or _same_numbers(values, column)
    except (TypeError, ValueError, OverflowError):
        is_exact, column = False, np.empty(0, object)
    if not is_exact or column.shape not in ((), (count,)):
        raise ValueError(
            f"Expected: `{name}` as one value or {count}, one for each line, "
            f"of type {'str' if dtype is object else np.dtype(dtype)}. "
            f"Received: {value!r}."
        )
    column = np.broadcast_to(column, (count,))
    return text_column(column, name) if dtype is object else column


def _same_numbers(values: np.ndarray, column: np.ndarray) -> bool:
    """Test whether arrays are equal except for rounding in a conversion."""
    if values.size == 0:
        return True
    return bool(
        values.dtype.kind in "biuf"
        and np.isfinite(column).all()
        and np.allclose(column, values, rtol=1e-6)
    )
