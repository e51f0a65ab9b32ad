"""Unknown words replaced by the source words they are aligned to.

Luong et al. (2015), section 4.2, after Luong et al. (2015b, "Addressing the
Rare Word Problem in Neural Machine Translation"). `copied_positions` runs in
the graph and copies; `replace_unknown_words` works on words and can translate
them by a dictionary.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keras import ops

from luong_keras.special_tokens import UNK, UNK_ID


def copied_positions(ids, alignments, step="produces"):
    """Source positions of unknown words; -1 for every other word.

    ids (..., T), alignments (..., T, S). The position is that of the largest
    attention weight, the first of equals: with `step="produces"` in the step
    that produced the word; with `"reads"` in the next one, which reads it, as
    in the authors' program. Where that step has no weights, as after the last
    word of a translation that was cut, the step that produced the word
    counts. Without any weights there is nothing to copy: -1. Returns int32
    (..., T).
    """
    weights = alignments
    if step == "reads":
        later = ops.concatenate(
            [weights[..., 1:, :], weights[..., :1, :] * 0], axis=-2
        )
        exists = ops.any(later > 0, axis=-1, keepdims=True)
        weights = ops.where(exists, later, weights)
    copies = ops.logical_and(
        ops.equal(ids, UNK_ID), ops.any(weights > 0, axis=-1)
    )
    best = ops.cast(ops.argmax(weights, axis=-1), "int32")
    return ops.where(copies, best, -1)


class ReplacedWords(NamedTuple):
    """A translation, and what became of its unknown words.

    `translated` is the number of those that the dictionary had, `copied` of
    those that were copied from the source, and `kept` of those without a
    link, which stay `<unk>`.
    """

    words: list[str]
    translated: int
    copied: int
    kept: int


def replace_unknown_words(
    words: Sequence[str],
    source_words: Sequence[str],
    links: Iterable[tuple[int, int]],
    dictionary: Mapping[str, str] | None = None,
) -> ReplacedWords:
    """Replaces each `<unk>` by the source word that it is linked to.

    Args:
        words: words of a translation.
        source_words: words of its source sentence.
        links: links `(source position, target position)`, 0-based; of those
            of a target word the first one counts.
        dictionary: translations of source words; words that it lacks, or
            all where it is None, are copied.

    Returns:
        The words with the replacements, and their numbers.

    Raises:
        ValueError: if an unknown word is linked to a position outside the
            source sentence.

    Example:
        >>> replace_unknown_words(
        ...     ["<unk>", "<unk>", "kommt"],
        ...     ["Milora", "Smith", "comes"],
        ...     [(0, 0), (1, 1), (2, 2)],
        ...     {"Smith": "Schmidt"},
        ... ).words
        ['Milora', 'Schmidt', 'kommt']
    """
    dictionary = dictionary or {}
    first: dict[int, int] = {}
    for i, j in links:
        first.setdefault(j, i)
    replaced = list(words)
    translated = copied = kept = 0
    for j, word in enumerate(words):
        if word != UNK:
            continue
        if j not in first:
            kept += 1
            continue
        source_word = _source_word(source_words, first[j], j)
        replaced[j] = dictionary.get(source_word, source_word)
        if source_word in dictionary:
            translated += 1
        else:
            copied += 1
    return ReplacedWords(replaced, translated, copied, kept)


def _source_word(source_words: Sequence[str], i: int, j: int) -> str:
    if not 0 <= i < len(source_words):
        raise ValueError(
            "A link must lead to a word of the source sentence. Received: "
            f"{i}-{j} for {len(source_words)} source words. Check that text "
            "and links are of the same sentences and direction."
        )
    return source_words[i]
