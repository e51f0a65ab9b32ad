"""Alignment error rate (Och and Ney, 2003), and links from attention."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from luong_keras.alignment.links import Link
from luong_keras.config import AlignmentStep
from luong_keras.config.checks import check_choice, choices_of

_LINK = re.compile(r"([0-9]+)([-p?])([0-9]+)")


class AlignmentLinks(NamedTuple):
    """Gold links of a sentence pair, `(source, target)`, 0-based.

    `possible` contains `sure`.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_alignments(
    lines: Iterable[str], one_based: bool = False
) -> list[AlignmentLinks]:
    """Parse alignments in the usual text format, one sentence per line.

    A link is `i-j` if it is sure and `ipj` or `i?j` if it is possible; i is
    the source position and j the target position. A line may be empty.

    Args:
        lines: Lines of text, such as an open file.
        one_based: Whether the positions count from 1.

    Returns:
        The links of each line, 0-based.

    Raises:
        ValueError: If a link is malformed; the message has the line number.

    Example:
        >>> links = parse_alignments(["1-1 2p1"], one_based=True)
        >>> sorted(links[0].sure), sorted(links[0].possible)
        ([(0, 0)], [(0, 0), (1, 0)])
    """
    alignments = []
    for number, line in enumerate(lines, start=1):
        links = [
            _parse_link(text, number, int(one_based)) for text in line.split()
        ]
        sure = frozenset(link for link, is_sure in links if is_sure)
        possible = frozenset(link for link, _ in links)
        alignments.append(AlignmentLinks(sure, possible))
    return alignments


def _parse_link(text: str, number: int, base: int) -> tuple[Link, bool]:
    match = _LINK.fullmatch(text)
    if match is None:
        raise ValueError(
            "A link must be written `i-j` (sure), `ipj` or `i?j` "
            f"(possible). Received: {text!r} in line {number}. Correct "
            "the line, or convert the file to this format."
        )
    link = int(match[1]) - base, int(match[3]) - base
    if min(link) < 0:
        raise ValueError(
            "Positions that count from 1 cannot be 0. Received: "
            f"{text!r} in line {number}. Leave out `one_based=True`, or "
            "--gold-one-based, if the file counts from 0."
        )
    return link, match[2] == "-"


def alignment_error_rate(
    alignments: Sequence[Iterable[Link]], gold: Sequence[AlignmentLinks]
) -> float:
    """Compute the alignment error rate of a corpus.

    With the links A, the sure links S and the possible links P, counted
    over all sentences, AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).

    Args:
        alignments: Links `(source, target)` of each sentence, 0-based.
        gold: Gold links of the same sentences.

    Returns:
        The rate, from 0 (best) to 1.

    Raises:
        ValueError: If the numbers of sentences differ, or if there are
            neither links nor sure links.

    Example:
        >>> gold = parse_alignments(["0-0 1-1 2p1"])
        >>> alignment_error_rate([[(0, 0), (2, 1)]], gold)
        0.25
    """
    if len(alignments) != len(gold):
        raise ValueError(
            "`alignments` and `gold` must have equally many sentences. "
            f"Received: {len(alignments)} and {len(gold)}. Check that both "
            "come from the same text."
        )
    scores = LinkScores()
    for links, reference in zip(alignments, gold, strict=True):
        scores.add(links, reference)
    return scores.error_rate


@dataclass
class LinkScores:
    """Alignment scores, counted sentence by sentence.

    With the links A, the sure links S and the possible links P of all
    sentences together, the precision is |A ∩ P| / |A| and the recall is
    |A ∩ S| / |S| (Och and Ney 2003, section 6). `alignment_error_rate` has
    the formula of the alignment error rate.

    Attributes:
        links: |A|.
        sure: |S|.
        sure_links: |A ∩ S|.
        possible_links: |A ∩ P|.

    Example:
        >>> (gold,) = parse_alignments(["0-0 1-1 2p1"])
        >>> scores = LinkScores()
        >>> scores.add([(0, 0), (2, 1)], gold)
        >>> scores.precision, scores.recall, scores.error_rate
        (1.0, 0.5, 0.25)
    """

    links: int = 0
    sure: int = 0
    sure_links: int = 0
    possible_links: int = 0

    def add(self, links: Iterable[Link], gold: AlignmentLinks) -> None:
        """Count the links of one more sentence."""
        link_set = set(links)
        # P contains S, even if the `possible` of the caller does not.
        possible = gold.possible | gold.sure
        self.links += len(link_set)
        self.sure += len(gold.sure)
        self.sure_links += len(link_set & gold.sure)
        self.possible_links += len(link_set & possible)

    @property
    def precision(self) -> float:
        """Share of the links that are possible; 1 without links."""
        return self.possible_links / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """Share of the sure links that were found; 1 without sure links."""
        return self.sure_links / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """Alignment error rate, from 0 (best) to 1.

        Raises:
            ValueError: If there are neither links nor sure links.
        """
        total = self.links + self.sure
        if total == 0:
            raise ValueError(
                "AER is undefined without links. Received: no links and no "
                "sure links. Check the files."
            )
        return 1.0 - (self.sure_links + self.possible_links) / total


def best_links(
    weights: np.ndarray,
    source_length: int,
    target_length: int,
    step: str = "produces",
) -> frozenset[Link]:
    """Link each target word to the source word of its largest weight.

    The weights of a word may be those of the step that produces the word, or
    those of the next step, which reads the word. The authors' program prints
    the latter.

    Args:
        weights: (T, S) attention weights of one sentence, or larger if the
            sentence was padded on the right.
        source_length: Number of source words.
        target_length: Number of target words, without the end symbol.
        step: `"produces"` or `"reads"`. For `"reads"` the matrix has one more
            row, for the step that reads the last word. Without this row, the
            last word has the row of the step that produces it.

    Returns:
        One link per target word, or none if all its weights are zero.

    Raises:
        ValueError: If `weights` is not a matrix of at least that size, or
            `step` is unknown.

    Example:
        >>> sorted(best_links(np.array([[0.2, 0.8], [0.9, 0.1]]), 2, 2))
        [(0, 1), (1, 0)]
    """
    check_choice(choices_of(AlignmentStep), step=step)
    weights = np.asarray(weights)
    shape = (target_length, source_length)
    if weights.ndim != 2 or any(
        size < minimum
        for size, minimum in zip(weights.shape, shape, strict=True)
    ):
        raise ValueError(
            "`weights` must be a matrix (target, source) of at least "
            f"{shape}. Received: shape {weights.shape}. Pass the weights of "
            "one sentence, with the target on the first axis."
        )
    rows = np.arange(target_length)
    if step == "reads":
        rows = np.minimum(rows + 1, len(weights) - 1)
    weights = weights[rows, :source_length]
    return frozenset(
        (int(row.argmax()), j)
        for j, row in enumerate(weights)
        if np.any(row > 0)
    )
