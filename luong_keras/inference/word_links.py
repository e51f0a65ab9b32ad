"""Links between the words of a text and of its translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from luong_keras.alignment.aer import best_links
from luong_keras.alignment.links import Link
from luong_keras.alignment.word_positions import nearest_word_positions
from luong_keras.inference.search_options import text_column
from luong_keras.inference.translation import (
    ScoredTranslation,
    places_by_length,
)

if TYPE_CHECKING:
    from luong_keras.inference.text_translator import TextTranslator


class AlignedPair(NamedTuple):
    """The links of a sentence pair, `(source word, target word)`.

    `truncated` is whether a side was longer than what was read: words behind
    it have no link.
    """

    links: frozenset[Link]
    truncated: bool


def aligned_pairs(
    translator: TextTranslator,
    sources: Sequence[str],
    targets: Sequence[str],
    step: str | None = None,
) -> list[AlignedPair]:
    """Links the words of given translations, a batch after the other.

    Args:
        translator: a trained model with attention.
        sources: texts; their words are what stands between white space.
        targets: their translations.
        step: whose weights belong to a word, as `best_links` takes it;
            the translator's `alignment_step` when None.

    Returns:
        The links of every pair, in order.

    Raises:
        ValueError: for a model without attention, another step, or other
            numbers of texts.
    """
    refuse_without_attention(translator.translation_model)
    sources = [*text_column(sources, "sources")]
    targets = [*text_column(targets, "targets")]
    if len(sources) != len(targets):
        raise ValueError(
            "Expected: as many targets as sources. Received: "
            f"{len(targets)} and {len(sources)}."
        )
    step = step or translator.decoding.alignment_step
    found: dict[int, AlignedPair] = {}
    # The batches that `score` would make itself: the weights of one are in
    # memory at a time.
    for places in places_by_length(targets, translator.decoding.batch_size):
        texts = [[side[i] for i in places] for side in (sources, targets)]
        scored = translator.score(*texts)
        for place, pair in zip(places, scored, strict=True):
            links = links_of_words(pair, sources[place], targets[place], step)
            found[place] = AlignedPair(links, pair.truncated)
    return [found[place] for place in range(len(sources))]


def links_of_words(
    scored: ScoredTranslation, source: str, target: str, step: str
) -> frozenset[Link]:
    """The links of the words of one pair, from those of its tokens.

    Args:
        scored: the pair, as the model reads it.
        source: the text, whose words are what stands between white space.
        target: likewise.
        step: as in `best_links`.

    Returns:
        A link for every two words that have tokens which are linked.

    Example:
        >>> import numpy as np
        >>> weights = np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5], [0, 0, 1]])
        >>> scored = ScoredTranslation(
        ...     -1.0, ["Haus", ".", "</s>"], np.full(3, -1 / 3),
        ...     ["a", "house", "."], weights)
        >>> sorted(links_of_words(scored, "a house.", "Haus .", "produces"))
        [(0, 0), (1, 1)]
    """
    tokens = scored.tokens[:-1]
    links = best_links(
        scored.alignments, len(scored.source_tokens), len(tokens), step
    )
    read = nearest_word_positions(scored.source_tokens, source.split())
    written = nearest_word_positions(tokens, target.split())
    return frozenset(
        (first, second)
        for i, j in links
        if (first := read[i]) is not None and (second := written[j]) is not None
    )


def refuse_without_attention(translation_model: Any) -> None:
    """Raises ValueError for a model that aligns nothing."""
    if not translation_model.has_attention:
        raise ValueError(
            "A model without attention has no alignments. Received: "
            "config.attention.kind='none'. Take a run that was trained with "
            "attention, such as model.attention.kind=global."
        )
