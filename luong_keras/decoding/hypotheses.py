"""What every search returns."""

from typing import Any, NamedTuple


class Hypotheses(NamedTuple):
    """The n best translations of each of B sentences, the best first.

    Attributes:
        ids: (B, N, T) int32 words, `</s>` left out, padded with `<pad>`.
        lengths: (B, N) int32 number of words.
        scores: (B, N) log-probability of the words and `</s>`; divided by
            the length where the search normalises. A hypothesis cut at the
            maximum length has none for `</s>`. `-inf` marks an empty rank.
        alignments: (B, N, T, S) attention weights of the step that produced
            each word, after the softmax; the row after the last word is that
            of `</s>`, where the hypothesis has one.
    """

    ids: Any
    lengths: Any
    scores: Any
    alignments: Any
