"""What the signatures of the contract answer, and its JSON as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_ROW = ("truncated", "status")
_NBEST = ("translations", "scores", "truncations", *_ROW)
# Outputs that are new in contract 3.
_LATER = ("truncations",)
_SCORE = ("log_probability", "tokens", "word_log_probabilities", "lengths")
_ATTENTION = ("alignments", "source_tokens", "source_lengths")
# Signature -> all of its outputs. To name them all is to ask for what whoever
# names none does, and a server joins both; but what a later export answers
# besides is not sent.
OUTPUTS = {
    "serving_default": ("translation", "score", *_ROW),
    "translate": _NBEST,
    "translate_with_options": _NBEST,
    "search": _NBEST,
    "align": (
        *("translation", "score", "tokens", "lengths"),
        *(*_ATTENTION, *_ROW),
    ),
    "score": (*_SCORE, *_ROW),
    "align_pair": (*_SCORE, *_ATTENTION, *_ROW),
    "encode": ("memory", "lengths", *_ROW),
    # Whatever there is: so the version is read where it is another.
    "contract": (),
}
# Output -> its type; the others are float32.
_TYPES = {
    **dict.fromkeys(["translation", "translations", "status"], object),
    **dict.fromkeys(["tokens", "source_tokens"], object),
    **dict.fromkeys(["lengths", "source_lengths"], np.int32),
    **dict.fromkeys(["truncated", "truncations"], bool),
}
_encode = np.frompyfunc(str.encode, 1, 1)


def outputs_of(signature: str, version: int) -> tuple[str, ...]:
    """Names of the outputs of a signature, by contract version.

    Example:
        >>> outputs_of("translate", 2)
        ('translations', 'scores', 'truncated', 'status')
    """
    outputs = OUTPUTS[signature]
    if version >= 3:
        return outputs
    return tuple(name for name in outputs if name not in _LATER)


def answer_columns(
    rows: Sequence[Mapping[str, Any]], outputs: Sequence[str]
) -> dict[str, np.ndarray]:
    """The rows of an answer as arrays of all rows, strings as bytes.

    Args:
        rows: output -> its value, for each row.
        outputs: those to read; all that there are, of whatever type,
            where it is empty.

    Example:
        >>> rows = [{"score": -1, "status": "OK", "news": 0}] * 2
        >>> answer_columns(rows, ["score", "status"])
        {'score': array([-1., -1.], dtype=float32),
         'status': array([b'OK', b'OK'], dtype=object)}
    """
    if not outputs:
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
    arrays = {
        name: _array([row[name] for row in rows], _TYPES.get(name, np.float32))
        for name in outputs
    }
    if "alignments" in arrays and arrays["alignments"].size == 0:
        # JSON does not tell the axes behind one of size 0.
        width = arrays["source_tokens"].shape[1]
        arrays["alignments"] = np.zeros(
            (*arrays["tokens"].shape, width), np.float32
        )
    if "memory" in arrays and arrays["memory"].ndim == 2:
        arrays["memory"] = np.zeros((len(rows), 0, 0), np.float32)
    return arrays


def _array(values: list[Any], kind: Any) -> np.ndarray:
    array = np.array(values, kind)
    return _encode(array) if kind is object else array
