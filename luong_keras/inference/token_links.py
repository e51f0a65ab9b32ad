"""Links between the tokens of a parallel text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from luong_keras.alignment.links import parse_links
from luong_keras.alignment.word_pairs import AlignedSentences
from luong_keras.alignment.word_positions import word_positions
from luong_keras.data.corpus import Corpus
from luong_keras.data.parallel_text import read_lines
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.progress import progress_bar
from luong_keras.special_tokens import UNK
from luong_keras.text.tokenizer import (
    Tokenizer,
    batches_of_lines,
    vocabulary_of,
)

CHUNK = 1024  # pairs that are aligned at a time


def model_links(
    trained: TextTranslator, corpus: Corpus, maximum: int
) -> Iterator[AlignedSentences]:
    """A training text, aligned by a model.

    Every target token is linked to the source token that the step which
    produces it attends to most.

    Args:
        trained: the model with its tokenizers.
        corpus: the text, as the model was trained on it.
        maximum: pairs to align, spread over the text.

    Yields:
        Source tokens, target tokens and links of each pair.

    Raises:
        ValueError: for a model without attention.
    """
    # The text of a corpus is prepared already.
    translator = TextTranslator(
        trained.translation_model,
        trained.source_tokenizer,
        trained.target_tokenizer,
        trained.decoding,
    )
    if not translator.translation_model.has_attention:
        raise ValueError(
            "A model without attention has no links. Expected: links of "
            "another program, by --links. Received: "
            "config.attention.kind='none'."
        )
    known = [
        set(vocabulary_of(tokenizer))
        for tokenizer in (trained.source_tokenizer, trained.target_tokenizer)
    ]
    count = min(maximum, len(corpus))
    places = np.arange(count) * len(corpus) // max(count, 1)
    cut = 0
    with progress_bar("aligning words", count) as advance:
        for start in range(0, count, CHUNK):
            lines = corpus.lines(places[start : start + CHUNK])
            sources, targets = (
                [line.decode() for line in side] for side in lines
            )
            for pair in translator.score(sources, targets):
                cut += pair.truncated
                links = enumerate(pair.alignments[:-1].argmax(axis=1))
                yield (
                    _named(pair.source_tokens, known[0]),
                    _named(pair.tokens[:-1], known[1]),
                    [(int(i), j) for j, i in links],
                )
                advance(1)
    if cut:
        print(
            f"{cut} of {count} pairs were longer than "
            "`decoding.max_source_length`: only their beginning was counted"
        )


def given_links(
    tokenizers: Sequence[Tokenizer], source: Path, target: Path, links: Path
) -> Iterator[AlignedSentences]:
    """Files whose words are aligned, as tokens.

    Args:
        tokenizers: of both languages.
        source: a sentence a line, words set apart by spaces.
        target: likewise.
        links: `0-0 1-2`, a pair a line, positions of words.

    Yields:
        As `model_links`.

    Raises:
        ValueError: for another number of lines; for a link that is malformed
            or outside its sentences, with the number of its line; for words
            that the tokenizer changes.
    """
    sides = [list(read_lines(path)) for path in (source, target)]
    found = parse_links(read_lines(links))
    if not len(sides[0]) == len(sides[1]) == len(found):
        raise ValueError(
            "Expected: as many lines in all three files. Received: "
            f"{len(sides[0])} in {source}, {len(sides[1])} in {target} and "
            f"{len(found)} in {links}."
        )
    tokens = [
        _tokens(tokenizer, lines)
        for tokenizer, lines in zip(tokenizers, sides, strict=True)
    ]
    known = [set(vocabulary_of(tokenizer)) for tokenizer in tokenizers]
    pairs = zip(*sides, *tokens, found, strict=True)
    for number, (*lines, read, written, own) in enumerate(pairs, start=1):
        words = [line.split() for line in lines]
        if any(i >= len(words[0]) or j >= len(words[1]) for i, j in own):
            raise ValueError(
                f"A link in line {number} of {links} leads outside its "
                f"sentences. Expected: positions below {len(words[0])} and "
                f"{len(words[1])}. Received: {own}. Check that the files have "
                "the same lines and direction."
            )
        places = [
            word_positions(*pair)
            for pair in ((read, words[0]), (written, words[1]))
        ]
        wanted = set(own)
        yield (
            _named(read, known[0]),
            _named(written, known[1]),
            [
                (i, j)
                for i, first in enumerate(places[0])
                for j, second in enumerate(places[1])
                if (first, second) in wanted
            ],
        )


def _named(tokens: list[str], known: set[str]) -> list[str]:
    """The tokens, `<unk>` where they are unknown."""
    return [token if token in known else UNK for token in tokens]


def _tokens(tokenizer: Tokenizer, lines: list[str]) -> list[list[str]]:
    return [
        [token.decode() for token in row]
        for batch in batches_of_lines(lines)
        for row in tokenizer.tokens(batch).to_list()
    ]
