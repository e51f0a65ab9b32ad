"""BLEU of groups of sentences with similar lengths.

Attention should keep the quality on long sentences; this analysis shows
whether it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from luong_keras.evaluation.metrics.bleu import (
    Target,
    language_of_script,
    target_of,
    token_counts,
    tokenizer_of,
)
from luong_keras.evaluation.translation_scores import (
    References,
    check_sentences,
    corpus_bleu,
)
from luong_keras.tables import pluralize

if TYPE_CHECKING:
    from luong_keras.config import DataConfig


class LengthGroup(NamedTuple):
    """A group of sentences and its BLEU.

    `low` and `high` are the limits of the group, both included; `high` is
    None in the last group, which has no upper limit.
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
    """Score each group of sentences with similar source lengths.

    Args:
        lengths: Number of words of each source sentence.
        hypotheses: Translations.
        references: One reference per translation, or a list of several.
        limits: Greatest length of each group, in rising order; one more
            group contains the longer sentences.
        tokenize: As in `corpus_bleu`.
        lowercase: As in `corpus_bleu`.

    Returns:
        The groups that have sentences, shortest first.

    Raises:
        ValueError: If the lists differ in length or are empty, or the
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
            "`lengths` must have one number per sentence. Received: "
            f"{pluralize(len(lengths), 'length')} and "
            f"{pluralize(len(hypotheses), 'sentence')}. Count the words of "
            "each source sentence."
        )
    limits = list(limits)
    if any(a >= b for a, b in zip([0, *limits], limits, strict=False)):
        raise ValueError(
            "`limits` must be positive and rise. Received: "
            f"{tuple(limits)}. Sort them and drop duplicates."
        )
    # Columns of data frames are indexed by their labels.
    lengths, hypotheses = list(lengths), list(hypotheses)
    references = list(references)
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


def bleu_by_source_length(
    sources: Sequence[str],
    translations: Sequence[str],
    references: References,
    data: DataConfig,
) -> list[LengthGroup]:
    """Score groups of sentences of a run with similar source lengths.

    Args:
        sources: The source sentences. Their words are separated by spaces; in
            text without spaces, words are the tokens of its BLEU tokenizer.
        translations: Their translations.
        references: One reference per translation, or a list of several.
        data: The data settings of the run.
    """
    has_spaces = language_of_script(sources) in (None, "ko")
    words = "none"
    if not (has_spaces or data.pretokenized):
        source = Target(data.source_language, references=sources)
        words, _ = tokenizer_of(source)
    return bleu_by_length(
        token_counts(words, sources),
        translations,
        references,
        tokenize=tokenizer_of(target_of(data, references))[0],
        lowercase=data.lowercase,
    )
