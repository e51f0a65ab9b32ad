"""BLEU of groups of sentences with similar lengths.

Attention is expected to keep its quality on long sentences; this is the
analysis that shows it. `bleu_by_length` groups by given limits of the source
length, `bleu_by_reference_length` takes equally many sentences a group, as
the paper's own script did.
"""

from collections.abc import Sequence
from typing import NamedTuple

from luong_keras.evaluation.bleu import (
    References,
    check_sentences,
    corpus_bleu,
    multi_bleu,
)
from luong_keras.tables import counted


class LengthGroup(NamedTuple):
    """A group of sentences and its BLEU.

    `low` and `high` are the group's limits, both included; `high` is None
    in the last group, which has no upper limit.
    """

    low: int
    high: int | None
    sentences: int
    mean_length: float
    bleu: float


def bleu_by_length(
    lengths: Sequence[int],
    hypotheses: Sequence[str],
    references: References,
    limits: Sequence[int] = (10, 20, 30, 40, 50),
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[LengthGroup]:
    """Scores each group of sentences with similar source lengths.

    Args:
        lengths: number of words of each source sentence.
        hypotheses: translations.
        references: one a translation, or a list of several for each.
        limits: greatest length of each group, in rising order; one more
            group takes the longer sentences.
        tokenize: as in `corpus_bleu`.
        lowercase: as in `corpus_bleu`.

    Returns:
        The groups that have sentences, shortest first.

    Raises:
        ValueError: if the lists differ in length or are empty, or the
            limits do not rise.

    Example:
        >>> text = ["ein kurzer Satz hier", "das ist ein langer Satz"]
        >>> for group in bleu_by_length([4, 12], text, text, limits=(10,)):
        ...     print(group.low, group.high, round(group.bleu))
        0 10 100
        11 None 100
    """
    check_sentences(hypotheses, references)
    if len(lengths) != len(hypotheses):
        raise ValueError(
            "`lengths` must have one number a sentence. Received: "
            f"{counted(len(lengths), 'length')} and "
            f"{counted(len(hypotheses), 'sentence')}. Count the words of each "
            "source sentence."
        )
    limits = list(limits)
    if any(a >= b for a, b in zip([0, *limits], limits, strict=False)):
        raise ValueError(
            "`limits` must be positive and rise. Received: "
            f"{tuple(limits)}. Sort them and drop duplicates."
        )
    groups = []
    highs: list[int | None] = [*limits, None]
    for low, high in zip([0, *(x + 1 for x in limits)], highs, strict=True):
        rows = [
            row
            for row, length in enumerate(lengths)
            if length >= low and (high is None or length <= high)
        ]
        if rows:
            bleu = corpus_bleu(
                [hypotheses[row] for row in rows],
                [references[row] for row in rows],
                tokenize,
                lowercase,
            )
            mean = sum(lengths[row] for row in rows) / len(rows)
            groups.append(LengthGroup(low, high, len(rows), mean, bleu.score))
    return groups


class ReferenceLengthGroup(NamedTuple):
    """Sentences of neighbouring reference lengths and their BLEU.

    `cumulative_bleu` is that of this group and all shorter ones together;
    `length` is the number of words of the group's longest reference.
    """

    bleu: float
    cumulative_bleu: float
    length: int
    sentences: int


def bleu_by_reference_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    group_size: int = 200,
) -> list[ReferenceLengthGroup]:
    """Scores groups of equally many sentences, the shortest references first.

    Sentences are sorted by the length of the reference, equally long ones in
    the order given, cut into groups and scored by `multi_bleu`.

    Args:
        hypotheses: tokenised translations.
        references: tokenised reference translations.
        group_size: number of sentences of each group but the last, which
            has those that are left.

    Returns:
        The groups, shortest first.

    Raises:
        ValueError: if the lists differ in length or are empty, or
            `group_size` is not positive.

    Example:
        >>> text = ["das ist ein langer Satz", "ein kurzer Satz hier"]
        >>> for group in bleu_by_reference_length(text, text, group_size=1):
        ...     print(group.length, group.sentences, round(group.bleu))
        4 1 100
        5 1 100
    """
    check_sentences(hypotheses, references)
    if group_size < 1:
        raise ValueError(
            f"`group_size` must be positive. Received: {group_size}. Pass the "
            "number of sentences of a group, such as 200."
        )
    lengths = [len(reference.split()) for reference in references]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    hypotheses = [hypotheses[row] for row in order]
    references = [references[row] for row in order]
    groups = []
    for start in range(0, len(order), group_size):
        stop = min(start + group_size, len(order))
        group = multi_bleu(hypotheses[start:stop], references[start:stop])
        cumulative = multi_bleu(hypotheses[:stop], references[:stop])
        groups.append(
            ReferenceLengthGroup(
                group.score,
                cumulative.score,
                lengths[order[stop - 1]],
                stop - start,
            )
        )
    return groups
