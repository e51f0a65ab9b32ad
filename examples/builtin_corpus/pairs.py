"""Unlimited English-German corpus with gold word alignments.

A bilingual grammar builds both sides at once, so every pair is correct,
its words are aligned, and no data needs to be downloaded. German differs
from English where translation is hard: verbs at the end of subordinate
clauses, separable verbs, brackets of auxiliary and participle, endings that
depend on gender and case, compounds. Names and most numbers are rare and
identical in both languages, so a system has to copy them.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from .sentences import draw_sentence
from .words import Draws, English, German

SPLITS = {"train": range(0, 80), "dev": range(80, 90), "test": range(90, 100)}


class SentencePair(NamedTuple):
    """A sentence, its translation and the links between their words.

    Positions are 0-based `(source, target)` pairs of 13a tokens. `possible`
    holds only the links that are not in `sure`.
    """

    source: str
    target: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    sure: tuple[tuple[int, int], ...]
    possible: tuple[tuple[int, int], ...]


def generate_pairs(
    seed: int = 1, min_length: int = 3, max_length: int = 60
) -> Iterator[SentencePair]:
    """Generate an endless stream of sentence pairs.

    The same seed gives the same pairs on every machine. Short sentences can
    occur more than once.

    Args:
        seed: Start of the random sequence.
        min_length: Fewest tokens of either side.
        max_length: Most tokens of either side.

    Yields:
        Pairs whose two sides have `min_length` to `max_length` tokens.

    Raises:
        ValueError: If the lengths are out of order or too narrow.

    Example:
        >>> pair = next(generate_pairs(seed=4))
        >>> print(pair.source)
        A young uncle returned to a church.
        >>> print(pair.target)
        Ein junger Onkel kehrte zu einer Kirche zurück.
        >>> print(format_links(pair))
        0-0 1-1 2-2 3-3 4-4 5-5 6-6 3-7 7-8
    """
    if not 3 <= min_length <= max_length or max_length < 12:
        raise ValueError(
            "Lengths must satisfy 3 <= min_length <= max_length and "
            f"max_length >= 12. Received: min_length={min_length}, "
            f"max_length={max_length}. Widen the range."
        )
    draws = Draws(seed)
    while True:
        pair = _finish(*draw_sentence(draws))
        lengths = len(pair.source_tokens), len(pair.target_tokens)
        if min_length <= min(lengths) and max(lengths) <= max_length:
            yield pair


def split_pairs(split: str, size: int, seed: int = 1) -> list[SentencePair]:
    """Generate one split of the corpus.

    A stable hash of the German sentence decides the split, so no sentence
    of either language is in two splits, for any seeds. No sentence occurs
    twice in a split.

    Args:
        split: `"train"`, `"dev"` or `"test"`.
        size: Number of pairs.
        seed: Start of the random sequence.

    Returns:
        `size` pairs.

    Raises:
        ValueError: If `split` is unknown or `size` negative.

    Example:
        >>> [len(split_pairs(name, 20)) for name in ("train", "test")]
        [20, 20]
    """
    if split not in SPLITS:
        raise ValueError(
            f"`split` must be one of {', '.join(SPLITS)}. Received: "
            f"{split!r}. Use one of these names."
        )
    if size < 0:
        raise ValueError(
            f"`size` must not be negative. Received: {size}. Pass the "
            "number of pairs to generate."
        )
    pairs: list[SentencePair] = []
    seen: set[str] = set()
    sentences = generate_pairs(seed)
    while len(pairs) < size:
        pair = next(sentences)
        fresh = pair.target not in seen and pair.source not in seen
        if fresh and _bucket(pair.target) in SPLITS[split]:
            seen.update((pair.source, pair.target))
            pairs.append(pair)
    return pairs


def reversed_pair(pair: SentencePair) -> SentencePair:
    """Reverse a pair for the direction German to English.

    Args:
        pair: A sentence pair.

    Returns:
        The pair with its sides exchanged.

    Example:
        >>> pair = SentencePair("a b", "c", ("a", "b"), ("c",), ((1, 0),), ())
        >>> reversed_pair(pair).sure
        ((0, 1),)
    """

    def turn(links):
        return tuple(sorted((j, i) for i, j in links))

    return SentencePair(
        pair.target,
        pair.source,
        pair.target_tokens,
        pair.source_tokens,
        turn(pair.sure),
        turn(pair.possible),
    )


def format_links(pair: SentencePair) -> str:
    """Format the links of a pair as `0-0 1p2` (sure `-`, possible `p`).

    Args:
        pair: A sentence pair.

    Returns:
        The links in order of their target positions.

    Example:
        >>> pair = SentencePair("a b", "c", ("a", "b"), ("c",), ((0, 0),), ())
        >>> format_links(pair._replace(possible=((1, 0),)))
        '0-0 1p0'
    """
    links = [(j, i, "-") for i, j in pair.sure]
    links += [(j, i, "p") for i, j in pair.possible]
    return " ".join(f"{i}{mark}{j}" for j, i, mark in sorted(links))


def _bucket(sentence: str) -> int:
    return zlib.crc32(sentence.encode("utf-8")) % 100


def _drop_double_commas(words: list[German]) -> list[German]:
    kept: list[German] = []
    for word in words:
        if kept and kept[-1].unspoken and word.text in (",", ".", "?"):
            dropped = kept.pop()
            word.possible += dropped.possible
        kept.append(word)
    return kept


def _attach(tokens: list[str]) -> str:
    """Join tokens to text, without a space before punctuation."""
    text = ""
    for token in tokens:
        text += token if token in (",", ".", "?") else f" {token}"
    return text.lstrip()


def _finish(english: list[English], german: list[German]) -> SentencePair:
    german = _drop_double_commas(german)
    place = {id(word): i for i, word in enumerate(english)}
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for j, word in enumerate(german):
        sure.update((place[id(source)], j) for source in word.sure)
        for source, offset in word.possible:
            possible.add((place[id(source)] + offset, j))
    source_words = _capitalised([word.text for word in english])
    target_words = _capitalised([word.text for word in german])
    return SentencePair(
        _attach(source_words),
        _attach(target_words),
        tuple(source_words),
        tuple(target_words),
        tuple(sorted(sure)),
        tuple(sorted(possible - sure)),
    )


def _capitalised(tokens: list[str]) -> list[str]:
    return [tokens[0][0].upper() + tokens[0][1:], *tokens[1:]]
