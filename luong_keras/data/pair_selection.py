"""Which pairs of a corpus are short enough to train on."""

from __future__ import annotations

import dataclasses

import numpy as np

from luong_keras.data.corpus import Corpus
from luong_keras.data.token_lengths import token_lengths
from luong_keras.text.tokenizer import Tokenizer

OVER_LONG = ("drop", "cut", "cut_read_last")


@dataclasses.dataclass(frozen=True)
class PairSelection:
    """The pairs that are used, and the lengths of all.

    Args:
        lines: The numbers of the used lines, (n,), ascending.
        source_lengths: Tokens of each line of the corpus, at most the
            maximal length, (N,).
        target_lengths: The same of the target side.
        dropped: How many pairs were too long and left out.
        cut: How many pairs were too long and are cut.
        empty: How many pairs were left out for a side of no tokens.
    """

    lines: np.ndarray
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    dropped: int
    cut: int
    empty: int


def select_pairs(
    corpus: Corpus,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
    over_long: str,
) -> PairSelection:
    """Decides, before training, which pairs are used.

    Args:
        corpus: The sentence pairs.
        source_tokenizer: Turns source sentences into ids.
        target_tokenizer: Turns target sentences into ids.
        max_length: The most tokens of a side, `<s>` and `</s>` not counted.
        over_long: `"drop"`, `"cut"` or `"cut_read_last"`.

    Returns:
        The selection.

    Raises:
        ValueError: An argument is out of its range, or no pair is left.
    """
    if max_length < 1:
        raise ValueError(
            f"`max_length` must be at least 1. Received: {max_length}."
        )
    if over_long not in OVER_LONG:
        raise ValueError(
            f"`over_long` must be one of {OVER_LONG}. Received: {over_long!r}."
        )
    source = token_lengths(corpus, "source", source_tokenizer)
    target = token_lengths(corpus, "target", target_tokenizer)
    # A character that the tokenizer deletes can be a whole sentence.
    empty = (source == 0) | (target == 0)
    long = ~empty & (np.maximum(source, target) > max_length)
    drop = over_long == "drop"
    selection = PairSelection(
        lines=np.flatnonzero(~(empty | long) if drop else ~empty),
        source_lengths=np.minimum(source, max_length),
        target_lengths=np.minimum(target, max_length),
        dropped=int(long.sum()) if drop else 0,
        cut=0 if drop else int(long.sum()),
        empty=int(empty.sum()),
    )
    if not selection.lines.size:
        raise ValueError(
            f"No pair is left to train on. Received: {len(corpus)} pairs, "
            f"{selection.empty} with a side of no tokens, "
            f"{selection.dropped} with more than {max_length} tokens. Give a "
            "larger `max_length`, or `over_long='cut'`."
        )
    return selection
