"""The best and the worst translations of a run, and what they look at."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from luong_keras.evaluation.translation_scores import sentence_chrf
from luong_keras.report.run_record import RunRecord

# Scripts that set nothing between words: those of Thailand, Laos, Burma and
# Cambodia, of Japan and China.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff]"
)


class Piece(NamedTuple):
    """A part of a translation, and whether the reference has it."""

    text: str
    differs: bool


@dataclass
class Alignment:
    """Attention weights in percent, a row a word of the translation."""

    source: list[str]
    target: list[str]
    percent: list[list[int]]


@dataclass
class Shown:
    """A translation of one run."""

    run: str
    pieces: list[Piece]
    chrf: float
    alignment: Alignment | None = None


@dataclass
class Example:
    """A test pair and what the runs make of it."""

    number: int
    source: str
    reference: str
    shown: list[Shown] = field(default_factory=list)


@dataclass
class Group:
    """Examples under one heading."""

    title: str
    note: str
    examples: list[Example]


def examples(runs: Sequence[RunRecord], count: int) -> list[Group]:
    """The pairs that say most of a run, or of two.

    Args:
        runs: one, or two with the same test pairs, translated.
        count: how many of each kind.

    Returns:
        Of one run its best and its worst translations, of two those by which
        they differ most, each way.
    """
    scores = [sentence_chrf(run.translations, run.references) for run in runs]
    if len(runs) == 1:
        (rank,) = scores
        titles = ("The best", "The worst")
        note = "By the chrF of the sentence, longer ones first among equals."
    else:
        rank = [b - a for a, b in zip(*scores, strict=True)]
        titles = (f"Better in {runs[1].name}", f"Better in {runs[0].name}")
        note = "By the difference in chrF of the sentence."
    lengths = [len(source) for source in runs[0].sources]
    places = range(len(rank))
    high = sorted(places, key=lambda i: (-rank[i], -lengths[i]))[:count]
    low = sorted(places, key=lambda i: (rank[i], -lengths[i]))[:count]
    if len(runs) == 2:
        high = [i for i in high if rank[i] > 0]
        low = [i for i in low if rank[i] < 0]
    else:
        low = [i for i in low if i not in high]
    return [
        Group(title, note, [_example(runs, scores, i) for i in chosen])
        for title, chosen in zip(titles, (high, low), strict=True)
    ]


def pieces(translation: str, reference: str) -> list[Piece]:
    """A translation in parts that its reference has, or has not.

    They are words, or characters where nothing stands between words.

    Example:
        >>> [p.text for p in pieces("ein alter Hund", "ein Hund") if p.differs]
        ['alter ']
    """
    ours, theirs = _units(translation), _units(reference)
    matcher = difflib.SequenceMatcher(
        None,
        [unit.strip() for unit in ours],
        [unit.strip() for unit in theirs],
        autojunk=False,
    )
    found = []
    for kind, start, stop, *_ in matcher.get_opcodes():
        if stop > start:
            found.append(Piece("".join(ours[start:stop]), kind != "equal"))
    return found


def align(
    groups: Sequence[Group], runs: Sequence[RunRecord], longest: int = 40
) -> None:
    """Adds what the models attend to in the examples.

    Each run is loaded and translates its examples again, as it has
    translated the test pairs.

    Args:
        groups: of `examples`.
        runs: those that the examples are of.
        longest: the most words of a side that are drawn.
    """
    from luong_keras.inference.text_translator import TextTranslator
    from luong_keras.recipe.batched_progress import with_batched_progress
    from luong_keras.recipe.run_reading import load_run

    chosen = [example for group in groups for example in group.examples]
    for place, run in enumerate(runs):
        if run.config.model.attention.kind == "none" or not chosen:
            continue
        weights = run.results.get("weights")
        translator = TextTranslator(*load_run(run.folder, weights))
        found = with_batched_progress(
            translator.nbest,
            [example.source for example in chosen],
            size=translator.decoding.batch_size,
            what=f"aligning the examples of {run.name}",
        )
        for example, nbest in zip(chosen, found, strict=True):
            best = nbest[0]
            if max(len(best.tokens), len(best.source_tokens)) <= longest:
                example.shown[place].alignment = Alignment(
                    best.source_tokens,
                    best.tokens,
                    np.rint(100 * best.alignments).astype(int).tolist(),
                )


def _example(
    runs: Sequence[RunRecord], scores: Sequence[Sequence[float]], place: int
) -> Example:
    first = runs[0]
    reference = first.references[place]
    shown = [
        Shown(
            run.name,
            pieces(run.translations[place], reference),
            scores_of_run[place],
        )
        for run, scores_of_run in zip(runs, scores, strict=True)
    ]
    return Example(place + 1, first.sources[place], reference, shown)


def _units(text: str) -> list[str]:
    """Words with the space after them, or characters."""
    if _WITHOUT_SPACES.search(text):
        return list(text)
    return [f"{word} " for word in text.split()]
