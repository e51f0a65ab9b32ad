"""Counts of aligned word pairs in a parallel text."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from luong_keras.alignment.links import Link, check_links

AlignedSentences = tuple[Sequence[str], Sequence[str], Iterable[Link]]


class WordPair(NamedTuple):
    """Two words that are aligned to each other.

    `probability` is p(t|s), the share of the links of the source word that
    lead to the target word.
    """

    source: str
    target: str
    count: int  # type: ignore[assignment]  # hides `tuple.count`
    probability: float


def aligned_word_pairs(
    sentences: Iterable[AlignedSentences],
    source_words: Container[str] | None = None,
    target_words: Container[str] | None = None,
    min_count: int = 10,
) -> list[WordPair]:
    """Count the links between the words of a parallel text.

    Only links between a word of `source_words` and a word of `target_words`
    count. Pairs that are too rare are left out afterwards.

    Args:
        sentences: Source words, target words and links `(source position,
            target position)`, 0-based, of each sentence pair.
        source_words: The source vocabulary; all words when None.
        target_words: The target vocabulary; all words when None.
        min_count: Minimum number of links of a pair.

    Returns:
        The pairs, sorted by their words.

    Raises:
        ValueError: If a link leads outside its sentences; the message has
            the number of the sentence pair, from 1.

    Example:
        >>> sentences = [
        ...     (["red", "door"], ["rote", "Tür"], [(0, 0), (1, 1)]),
        ...     (["door"], ["Tür"], [(0, 0)]),
        ...     (["door"], ["Pforte"], [(0, 0)]),
        ... ]
        >>> for pair in aligned_word_pairs(sentences, min_count=2):
        ...     print(pair.source, pair.target, pair.count, pair.probability)
        door Tür 2 0.6666666666666666
    """
    counts: Counter[tuple[str, str]] = Counter()
    for number, (source, target, links) in enumerate(sentences, start=1):
        links = list(links)
        check_links(links, (len(source), len(target)), f"pair {number}")
        for i, j in links:
            if (source_words is None or source[i] in source_words) and (
                target_words is None or target[j] in target_words
            ):
                counts[source[i], target[j]] += 1
    source_counts: Counter[str] = Counter()
    for (source_word, _), count in counts.items():
        source_counts[source_word] += count
    return [
        WordPair(*words, count, count / source_counts[words[0]])
        for words, count in sorted(counts.items())
        if count >= min_count
    ]
