"""Links between the words of a text and of its translation."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from luong_keras.alignment.aer import best_links
from luong_keras.alignment.links import Link
from luong_keras.inference.search_options import pair_columns
from luong_keras.inference.translation import ScoredTranslation, in_order

if TYPE_CHECKING:
    from luong_keras.inference.text_translator import TextTranslator

_SPACE = "\u2581"  # SentencePiece writes it for a space


class AlignedPair(NamedTuple):
    """The links of a sentence pair, `(source word, target word)`.

    `truncated` is True if source or target was cut: later words have no links.
    """

    links: frozenset[Link]
    truncated: bool


def aligned_pairs(
    translator: TextTranslator,
    sources: Sequence[str],
    targets: Sequence[str],
    step: str | None = None,
) -> list[AlignedPair]:
    """Link the words of given translations, batch by batch.

    Args:
        translator: Translator with a model that has attention.
        sources: Texts, whose words are separated by white space.
        targets: The translations of the sources.
        step: The step whose weights belong to a word, as in `best_links`; the
            `alignment_step` of the translator when None.

    Returns:
        The links of each pair, in order.

    Raises:
        ValueError: For a model without attention, an unknown step, or
            different numbers of sources and targets.
    """
    refuse_without_attention(translator.translation_model)
    sources, targets = (
        [
            text if isinstance(text, str) else text.decode(errors="replace")
            for text in texts
        ]
        for texts in pair_columns(sources, targets)
    )
    step = step or translator.decoding.alignment_step
    # Only the weights of one batch are in memory at a time.
    return in_order(
        (
            place,
            AlignedPair(
                links_of_words(pair, sources[place], targets[place], step),
                pair.truncated,
            ),
        )
        for place, pair in translator.scored_by_place(sources, targets)
    )


def links_of_words(
    scored: ScoredTranslation, source: str, target: str, step: str
) -> frozenset[Link]:
    """Link the words of one pair according to the links of its tokens.

    Args:
        scored: The pair, as the model reads it.
        source: The source text, whose words are separated by white space.
        target: The target text, likewise.
        step: As in `best_links`.

    Returns:
        A link for every two words that have linked tokens.

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
    source_positions = nearest_word_positions(
        scored.source_tokens, source.split()
    )
    target_positions = nearest_word_positions(tokens, target.split())
    return frozenset(
        (first, second)
        for i, j in links
        if (first := source_positions[i]) is not None
        and (second := target_positions[j]) is not None
    )


def refuse_without_attention(translation_model: Any, use: str = "") -> None:
    """Check that the model has attention, and therefore alignments."""
    if not translation_model.has_attention:
        raise ValueError(
            f"A model without attention has no alignments{use}. Received: "
            "config.attention.kind='none'. Take a run that was trained with "
            "attention, such as model.attention.kind=global."
        )


def check_coverage(translation_model: Any, strength: Any) -> None:
    """Check that the model has attention if there is a coverage penalty."""
    if np.any(np.asarray(strength) > 0):
        refuse_without_attention(
            translation_model, ", which `coverage_penalty` needs"
        )


def nearest_word_positions(
    tokens: Sequence[str], words: Sequence[str]
) -> list[int | None]:
    """Find the word of each token of a prepared text.

    The text that a tokenizer reads may differ from the original: in lower
    case, with other quotation marks, with separated words, or cut at the end.
    Both texts are compared in lower case and in the compatibility form of
    Unicode (NFKC). Characters that still differ are matched with the
    characters between the same neighbours.

    Args:
        tokens: Words or subwords of the prepared sentence, or of its
            beginning.
        words: The words of the original sentence.

    Returns:
        One index into `words` per token: the word with most characters of
        the token, or None if no word has any.

    Example:
        >>> tokens = ["the", "car", "pet", "is", '"', "red", '"', "."]
        >>> nearest_word_positions(tokens, ["The", "carpet", "is", "“red”."])
        [0, 1, 1, 2, 3, 3, 3, 3]
    """
    token_letters, token_of_letter = _join_letters(
        token.replace(_SPACE, " ") for token in tokens
    )
    word_letters, word_of_letter = _join_letters(words)
    votes: list[Counter[int]] = [Counter() for _ in tokens]
    places = _matching_places(token_letters, word_letters)
    for token, place in zip(token_of_letter, places, strict=True):
        if place is not None:
            votes[token][word_of_letter[place]] += 1
    positions = [vote.most_common(1)[0][0] if vote else None for vote in votes]
    for place in reversed(range(len(positions) - 1)):
        # A lone space belongs to the word after it.
        if tokens[place] == _SPACE:
            positions[place] = positions[place + 1]
    return positions


def _join_letters(parts: Iterable[str]) -> tuple[str, list[int]]:
    """Normalise and join the parts; also return the part of each letter."""
    letters, part_of_letter = "", list[int]()
    for place, part in enumerate(parts):
        part_letters = unicodedata.normalize("NFKC", part).casefold()
        part_letters = "".join(part_letters.split())
        letters += part_letters
        part_of_letter += [place] * len(part_letters)
    return letters, part_of_letter


def _matching_places(letters: str, text: str) -> list[int | None]:
    """Return the place in `text` of each character of `letters`, or None."""
    if text.startswith(letters):
        return list(range(len(letters)))
    places: list[int | None] = [None] * len(letters)
    # Preparation never shortens a text that much: the rest was not read, and
    # comparing it would take long.
    text = text[: 4 * len(letters) + 100]
    matcher = difflib.SequenceMatcher(None, letters, text, autojunk=False)
    for operation, start, end, first, last in matcher.get_opcodes():
        if operation in ("equal", "replace"):
            for place in range(start, end):
                step = (place - start) * (last - first) // (end - start)
                places[place] = first + step
    return places
