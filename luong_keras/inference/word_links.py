"""Links between the words of a text and its translation; words of tokens."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from luong_keras.alignment.aer import best_links
from luong_keras.alignment.links import Link
from luong_keras.inference.search_options import text_column
from luong_keras.inference.translation import (
    ScoredTranslation,
    places_by_length,
)

if TYPE_CHECKING:
    from luong_keras.inference.text_translator import TextTranslator

_SPACE = "\u2581"  # what SentencePiece writes for a space


class AlignedPair(NamedTuple):
    """The links of a sentence pair, `(source word, target word)`.

    `truncated` is whether a side was longer than what was read: words after
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
    sources, targets = (
        [
            text if isinstance(text, str) else text.decode(errors="replace")
            for text in text_column(texts, name)
        ]
        for texts, name in ((sources, "sources"), (targets, "targets"))
    )
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


def word_positions(tokens: Sequence[str], words: Sequence[str]) -> list[int]:
    """Finds the word of every token, by counting characters.

    Args:
        tokens: words or subwords of a sentence, as a tokenizer shows them.
        words: the words of the same sentence.

    Returns:
        One index into `words` a token.

    Raises:
        ValueError: if the two have other characters than spaces in common.

    Example:
        >>> tokens = ["\u2581car", "pet", "s", "\u2581."]
        >>> word_positions(tokens, ["carpets", "."])
        [0, 0, 0, 1]
    """
    owners = [place for place, word in enumerate(words) for _ in word]
    texts = ["".join(token.replace(_SPACE, " ").split()) for token in tokens]
    if sum(map(len, texts)) != len(owners):
        raise ValueError(
            "Tokens and words must have the same characters but for spaces. "
            f"Received: {' '.join(tokens)!r} and {' '.join(words)!r}."
        )
    positions, start = [], 0
    for text in texts:
        # A lone space belongs to the word after it.
        positions.append(owners[min(start, len(owners) - 1)])
        start += len(text)
    return positions


def nearest_word_positions(
    tokens: Sequence[str], words: Sequence[str]
) -> list[int | None]:
    """Finds the word of every token of a text that was prepared.

    What a tokenizer reads may be another text than what stands there: in
    lower case, with other quotation marks, with separated words, or cut at
    its end. Both are compared in lower case and in Unicode's compatibility
    form (NFKC); characters that differ even so belong to what stands between
    the same neighbours.

    Args:
        tokens: words or subwords of the prepared sentence, or of its
            beginning.
        words: the words of the sentence as it was.

    Returns:
        One index into `words` a token, of the word that has most of its
        characters; None for a token that has none of any word.

    Example:
        >>> tokens = ["the", "car", "pet", "is", '"', "red", '"', "."]
        >>> nearest_word_positions(tokens, ["The", "carpet", "is", "“red”."])
        [0, 1, 1, 2, 3, 3, 3, 3]
    """
    read, readers = _letters(token.replace(_SPACE, " ") for token in tokens)
    written, owners = _letters(words)
    votes: list[Counter[int]] = [Counter() for _ in tokens]
    for reader, place in zip(readers, _places(read, written), strict=True):
        if place is not None:
            votes[reader][owners[place]] += 1
    found = [vote.most_common(1)[0][0] if vote else None for vote in votes]
    for place in reversed(range(len(found) - 1)):
        # A lone space belongs to the word after it.
        if tokens[place] == _SPACE:
            found[place] = found[place + 1]
    return found


def _letters(parts: Iterable[str]) -> tuple[str, list[int]]:
    """The text without spaces, comparable, and the part of each letter."""
    letters: list[str] = []
    owners: list[int] = []
    for place, part in enumerate(parts):
        plain = unicodedata.normalize("NFKC", part).casefold()
        plain = "".join(plain.split())
        letters.append(plain)
        owners += [place] * len(plain)
    return "".join(letters), owners


def _places(read: str, written: str) -> list[int | None]:
    """The place in one text of each character of the other."""
    if written.startswith(read):
        return list(range(len(read)))
    places: list[int | None] = [None] * len(read)
    # No text becomes that much shorter; the rest was not read, and comparing
    # it would take long.
    written = written[: 4 * len(read) + 100]
    matcher = difflib.SequenceMatcher(None, read, written, autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for place in range(start, end):
                step = (place - start) * (last - first) // (end - start)
                places[place] = first + step
    return places
