"""The word-for-word baseline: a dictionary, and the source's word order.

It says how much of a corpus a system gets right without reordering,
endings or compounds, so a score above it is what a model has learned.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol


class AlignedPair(Protocol):
    """What `word_for_word` needs of a sentence pair.

    `luong_keras.data.phrasebook.SentencePair` has these attributes.
    """

    @property
    def source_tokens(self) -> Sequence[str]:
        """Words of the source sentence."""

    @property
    def target_tokens(self) -> Sequence[str]:
        """Words of the target sentence."""

    @property
    def sure(self) -> Iterable[tuple[int, int]]:
        """Links `(source position, target position)`, 0-based."""


def word_for_word(pairs: Iterable[AlignedPair]) -> dict[str, str]:
    """Builds a dictionary from aligned sentence pairs.

    Args:
        pairs: sentence pairs with sure links.

    Returns:
        For each linked source word the target word that it is linked to
        most often; of equally frequent ones the first in sorted order.

    Example:
        >>> from luong_keras.data.phrasebook import SentencePair
        >>> pair = SentencePair(
        ...     "red door", "rote Tür", ("red", "door"), ("rote", "Tür"),
        ...     ((0, 0), (1, 1)), (),
        ... )
        >>> word_for_word([pair])
        {'red': 'rote', 'door': 'Tür'}
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        for i, j in pair.sure:
            counts[pair.source_tokens[i]][pair.target_tokens[j]] += 1
    return {
        source: min(targets, key=lambda word: (-targets[word], word))
        for source, targets in counts.items()
    }


def translate_word_for_word(
    tokens: Sequence[str], dictionary: Mapping[str, str]
) -> list[str]:
    """Translates word by word, in the source's order.

    Args:
        tokens: words of the source sentence.
        dictionary: target word of each source word.

    Returns:
        One word for each source word; unknown words are copied.

    Example:
        >>> translate_word_for_word(["red", "Milora"], {"red": "rote"})
        ['rote', 'Milora']
    """
    return [dictionary.get(token, token) for token in tokens]
