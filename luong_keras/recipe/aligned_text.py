"""Links between the words or tokens of a parallel text, in bounded memory."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from luong_keras.alignment.aer import LinkScores, parse_alignments
from luong_keras.alignment.dictionary import AlignedSentences
from luong_keras.alignment.links import Link, check_links
from luong_keras.alignment.symmetrization import METHODS, symmetrize
from luong_keras.data.corpus import Corpus
from luong_keras.data.sources.source_kinds import PlacedPair
from luong_keras.files.text_lines import read_lines
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.word_links import AlignedPair, aligned_pairs
from luong_keras.progress import progress_bar
from luong_keras.special_tokens import UNK
from luong_keras.tables import pluralize
from luong_keras.text.threads import batches_of
from luong_keras.text.tokenizer import vocabulary_of

CHUNK = 1024  # pairs that are read, sorted by length and aligned at a time


class AlignedLine(NamedTuple):
    """The links between the words of a sentence pair.

    Attributes:
        place: The file and line of the pair, such as `train.en:7`.
        lengths: The numbers of words of the source and of the target.
        forward: Links `(source, target)` of the translator.
        backward: Links of the translator of the other direction, reversed to
            `(source, target)`; None without such a translator.
        truncated: Whether a side was longer than the limit and was cut.
    """

    place: str
    lengths: tuple[int, int]
    forward: frozenset[Link]
    backward: frozenset[Link] | None = None
    truncated: bool = False


def aligned_lines(
    pairs: Iterable[PlacedPair],
    translator: TextTranslator,
    reverse: TextTranslator | None = None,
    step: str | None = None,
) -> Iterator[AlignedLine]:
    """Align a text in chunks of pairs.

    Args:
        pairs: The pairs of the text; white space separates words.
        translator: From the source to the target language.
        reverse: From the target to the source language.
        step: As in `TextTranslator.links`.

    Yields:
        Each pair in order; a pair of two empty sides has no links.

    Raises:
        ValueError: If a model has no attention; if a pair has one empty
            side, with the place of the pair.
    """
    for chunk in batches_of(pairs, CHUNK):
        lengths = [(len(s.split()), len(t.split())) for s, t in chunk]
        for pair, counts in zip(chunk, lengths, strict=True):
            if bool(counts[0]) != bool(counts[1]):
                side = "target" if counts[0] else "source"
                raise ValueError(
                    f"The {side} of {pair.place} is empty. Expected: words on "
                    "both sides, or on neither. Received: "
                    f"{pair[0]!r:.80} and {pair[1]!r:.80}. Correct the line, "
                    "or remove the pair."
                )
        sources, targets = ([pair[side] for pair in chunk] for side in (0, 1))
        forward = aligned_pairs(translator, sources, targets, step)
        backward: Sequence[AlignedPair | None] = [None] * len(chunk)
        if reverse is not None:
            backward = aligned_pairs(reverse, targets, sources, step)
        for pair, counts, there, back in zip(
            chunk, lengths, forward, backward, strict=True
        ):
            line = AlignedLine(
                pair.place, counts, there.links, truncated=there.truncated
            )
            if back is not None:
                line = line._replace(
                    backward=frozenset((i, j) for j, i in back.links),
                    truncated=there.truncated or back.truncated,
                )
            yield line


class GoldLinks:
    """Scores of links against the gold links of a file, line by line.

    Args:
        path: The file, plain or compressed, with one line per pair of the
            text: `i-j` is a sure link, `ipj` or `i?j` a possible one.
        one_based: Whether the positions in the file count from 1.

    Attributes:
        scores: Scores by method: `forward` and, with links of both
            directions, `backward` and each of `METHODS`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a link is malformed, with the number of its line.
    """

    def __init__(self, path: Path, one_based: bool = False) -> None:
        self._path = path
        self._one_based = one_based
        self._gold = parse_alignments(read_lines(path), one_based)
        self.scores: dict[str, LinkScores] = {}

    def compare(self, lines: Iterable[AlignedLine]) -> Iterator[AlignedLine]:
        """Yield the lines of a text after their links are counted.

        Raises:
            ValueError: If the file has fewer or more lines than the text, or
                if a gold link leads outside its sentences.
        """
        pairs = itertools.zip_longest(lines, self._gold)
        for number, (line, gold) in enumerate(pairs, start=1):
            if line is None or gold is None:
                text = (
                    pluralize(number - 1, "pair")
                    if line is None
                    else f"a text that continues with {line.place}"
                )
                raise ValueError(
                    "Expected: a line of gold links for each pair of the text. "
                    f"Received: {pluralize(len(self._gold), 'line')} in "
                    f"{self._path}, and {text}."
                )
            where = f"line {number} of {self._path} ({line.place})"
            check_links(gold.possible, line.lengths, where, self._one_based)
            for name, links in _links_by_method(line).items():
                self.scores.setdefault(name, LinkScores()).add(links, gold)
            yield line


def _links_by_method(line: AlignedLine) -> Mapping[str, Set[Link]]:
    if line.backward is None:
        return {"forward": line.forward}
    both = line.forward, line.backward
    return {
        "forward": line.forward,
        "backward": line.backward,
        **{method: symmetrize(*both, method) for method in METHODS},
    }


def model_links(
    trained: TextTranslator, corpus: Corpus, maximum: int
) -> Iterator[AlignedSentences]:
    """Align a training text with a model.

    Each target token is linked to the source token with the largest attention
    weight in the step that produces the target token.

    Args:
        trained: The model with its tokenizers.
        corpus: The prepared text on which the model was trained.
        maximum: The maximum number of pairs to align, spread over the text.

    Yields:
        Source tokens, target tokens and links of each pair.

    Raises:
        ValueError: If the model has no attention.
    """
    # No preprocessors: the text of a corpus is prepared already.
    translator = TextTranslator(
        trained.translation_model,
        trained.source_tokenizer,
        trained.target_tokenizer,
        trained.decoding,
    )
    if not translator.translation_model.has_attention:
        raise ValueError(
            "A model without attention has no links. Expected: a run with "
            "attention. Received: config.attention.kind='none'. The shortlist "
            "of another run with the same vocabularies serves this one too."
        )
    vocabularies = [
        set(vocabulary_of(tokenizer))
        for tokenizer in (trained.source_tokenizer, trained.target_tokenizer)
    ]
    count = min(maximum, len(corpus))
    numbers = np.arange(count) * len(corpus) // max(count, 1)
    cut = 0
    with progress_bar("aligning words", count) as advance:
        for start in range(0, count, CHUNK):
            lines = corpus.lines(numbers[start : start + CHUNK])
            sources, targets = (
                [line.decode() for line in side] for side in lines
            )
            # Batch by batch, without all alignments of the part.
            for _, pair in translator.scored_by_place(sources, targets):
                cut += pair.truncated
                links = enumerate(pair.alignments[:-1].argmax(axis=1))
                source, target = (
                    [token if token in known else UNK for token in tokens]
                    for tokens, known in zip(
                        (pair.source_tokens, pair.tokens[:-1]),
                        vocabularies,
                        strict=True,
                    )
                )
                yield source, target, [(int(i), j) for j, i in links]
                advance(1)
    if cut:
        print(
            f"{cut} of {count} pairs were longer than "
            "`decoding.max_source_length`: only their beginning was counted"
        )
