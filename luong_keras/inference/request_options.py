"""Search options of the sentences of a batch."""

from __future__ import annotations

from typing import NamedTuple

from luong_keras.inference.search_options import (
    SEARCH_OPTIONS,
    Option,
    option_column,
)
from luong_keras.with_tensorflow import tf


def option_tensors(count: int, **given: Option) -> dict[str, tf.Tensor]:
    """Return the options of `count` sentences, with one or `count` values.

    Args:
        count: B, the number of sentences.
        **given: Values, or tensors (B,), by the names in `SEARCH_OPTIONS`. The
            other options are unset.

    Returns:
        (B,) tensors by name, of all options.

    Example:
        >>> option_tensors(2, prefix=["Das", ""])["prefix"].numpy().tolist()
        [b'Das', b'']
    """
    values = dict.fromkeys(SEARCH_OPTIONS) | given
    return {
        name: tf.constant(
            option_column(name, value, count), SEARCH_OPTIONS[name].kind
        )
        for name, value in values.items()
    }


class Phrases(NamedTuple):
    """The prefix of each sentence, or P phrases per sentence.

    Attributes:
        ids: Ids of the words, (B, L) of prefixes, (B, P, L) of phrases.
        lengths: Number of words of each prefix (B,), or of each phrase (B, P);
            0 for none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


class RequestOptions(NamedTuple):
    """Search options whose texts are ids.

    Attributes:
        options: The options by name, all of `SEARCH_OPTIONS` or, for a smaller
            graph, only `BEAM_OPTIONS`.
        prefix: The words that translations begin with.
        required: Phrases that translations contain; None if the options are
            those of a beam, without samples, coverage or repetition.
        forbidden: Phrases that translations do not contain.
    """

    options: dict[str, tf.Tensor]
    prefix: Phrases
    required: Phrases | None = None
    forbidden: Phrases | None = None
