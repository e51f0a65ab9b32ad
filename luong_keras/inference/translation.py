"""Results of a translator in Python, and the order of its batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from luong_keras.alignment.aer import best_links
from luong_keras.progress import Advance
from luong_keras.tables import html_table, text_table
from luong_keras.text.threads import batches_of
from luong_keras.truncation import TruncatedPlaces

# Score of a rank that the search did not fill: JSON has no -Infinity.
ABSENT_SCORE = -1e30


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    `==` does not compare the arrays of two results.

    Attributes:
        text: The detokenised translation.
        score: The log-probability, normalised by the rule of the search.
        tokens: Words or subwords, with unknown words replaced if requested.
        source_tokens: Tokens of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        links: `(source position, target position)` of the largest weight of
            each token, in the step that `alignment_step` names.
        truncated: Whether source or prefix was cut, phrases were left out, or
            the translation was cut at its maximum length, without `</s>`.
    """

    text: str
    score: float
    tokens: list[str] = field(repr=False, hash=False)
    source_tokens: list[str] = field(repr=False, hash=False)
    alignments: np.ndarray = field(repr=False, compare=False)
    links: list[tuple[int, int]] = field(repr=False, hash=False)
    truncated: bool = False

    def as_dict(self, links: bool = False) -> dict[str, Any]:
        """Return text and score for JSON; with `links`, also tokens and links.

        Example:
            >>> weights = np.ones((1, 1))
            >>> door = Translation("Tür", -0.5, ["Tür"], ["door"], weights, [])
            >>> door.as_dict()
            {'text': 'Tür', 'score': -0.5}
        """
        names = ["text", "score"]
        if links:
            names += ["tokens", "source_tokens", "links"]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class ScoredTranslation:
    """The score and alignment of a given translation.

    `==` does not compare the arrays of two results.

    Attributes:
        log_probability: Log-probability of all words and `</s>`.
        tokens: Words or subwords, as far as they were read, and `</s>`.
        word_log_probabilities: (T,) log-probability of each token, given the
            tokens before it.
        source_tokens: Tokens of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        truncated: Whether source or target was cut at the limit.
    """

    log_probability: float
    tokens: list[str] = field(hash=False)
    word_log_probabilities: np.ndarray = field(compare=False)
    source_tokens: list[str] = field(repr=False, hash=False)
    alignments: np.ndarray = field(repr=False, compare=False)
    truncated: bool = False


class NBest(list[Any]):
    """A list of translations, or of such lists, that prints as a table.

    Example:
        >>> weights = np.ones((1, 1))
        >>> door = Translation("Tür", -0.5, ["Tür"], ["door"], weights, [])
        >>> NBest([NBest([door])])
        sentence  score  translation
        1         -0.50  Tür
    """

    def _rows(self) -> list[tuple[str, ...]]:
        lists = self if self and isinstance(self[0], list) else [self]
        rows: list[tuple[str, ...]] = [("sentence", "score", "translation")]
        for number, translations in enumerate(lists, start=1):
            rows += [
                (str(number), f"{t.score:.2f}", t.text) for t in translations
            ]
        return rows if lists is self else [row[1:] for row in rows]

    def __repr__(self) -> str:
        return text_table(self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._rows())


def translations_of(
    sentence: Mapping[str, Any], step: str = "produces"
) -> NBest:
    """Return the translations of one sentence, with their words.

    Args:
        sentence: The results of one sentence with N translations, strings as
            bytes: `translations` and `scores` (N,), `tokens` (N, T),
            `lengths` (N,), `alignments` (N, T, S), `source_tokens` (S,),
            `source_lengths` (), `truncated` () and `unfinished` (N,).
        step: The step whose weights align a word, as in
            `DecodingConfig.alignment_step`.

    Returns:
        The translations that the search found, the best first.
    """
    return NBest(
        _make_translation(sentence, rank, step)
        for rank, score in enumerate(sentence["scores"])
        if score > ABSENT_SCORE
    )


def best_of(translations: Sequence[Translation]) -> Translation:
    """Return the first translation, or an empty one without any.

    Example:
        >>> best_of([]).text
        ''
    """
    nothing = Translation("", -np.inf, [], [], np.zeros((0, 0)), [])
    return next(iter(translations), nothing)


def best_text_of(sentence: Mapping[str, Any]) -> str:
    """Return the best translation of one sentence, or "" without one.

    Args:
        sentence: The results of one sentence, as in `translations_of`.
    """
    if sentence["scores"][0] <= ABSENT_SCORE:
        return ""
    return sentence["translations"][0].decode()


def scored_translation_of(sentence: Mapping[str, Any]) -> ScoredTranslation:
    """Return the scored translation of one sentence.

    Args:
        sentence: One row of the outputs of the signature `align_pair`, strings
            as bytes.
    """
    tokens = _decode_tokens(sentence["tokens"], sentence["lengths"])
    source = _decode_tokens(
        sentence["source_tokens"], sentence["source_lengths"]
    )
    return ScoredTranslation(
        float(sentence["log_probability"]),
        tokens,
        sentence["word_log_probabilities"][: len(tokens)],
        source,
        # A view would keep the weights of the whole batch in memory.
        sentence["alignments"][: len(tokens), : len(source)].copy(),
        bool(sentence["truncated"]),
    )


def sentences_by_place(
    run_batch: Callable[[list[int]], Mapping[str, Any]],
    lines: Sequence[str | bytes],
    size: int,
    advance: Advance | None = None,
    cuts: TruncatedPlaces | None = None,
    map_batches: Callable[..., Iterable[Any]] = map,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run batches of lines of similar length, for little padding.

    Args:
        run_batch: Function of the places of some lines that returns results,
            a tensor (B, ...) each.
        lines: The lines.
        size: The number of lines per batch.
        advance: Callback for the number of sentences of each batch.
        cuts: Record of the lines that were cut, or whose best translation was.
        map_batches: Function like `map` that runs the batches.

    Yields:
        The place of each line, and its row of the results.
    """

    def run(places):
        results = run_batch(places).items()
        return places, {name: np.asarray(result) for name, result in results}

    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    for places, arrays in map_batches(run, batches_of(order, size)):
        for row, place in enumerate(places):
            sentence = {name: array[row] for name, array in arrays.items()}
            if cuts is not None:
                cuts.add(
                    place,
                    bool(sentence["truncated"]),
                    bool(sentence["unfinished"][0]),
                    bool(
                        sentence["scores"][0] <= ABSENT_SCORE
                        and sentence["source_lengths"] > 0
                    ),
                )
            yield place, sentence
        if advance is not None:
            advance(len(places))


def in_order(results_by_place: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return the results of lines in the order of their places."""
    return [result for _, result in sorted(results_by_place, key=itemgetter(0))]


def _make_translation(sentence, rank, step) -> Translation:
    """Create a `Translation` from the arrays of one sentence."""
    source = _decode_tokens(
        sentence["source_tokens"], sentence["source_lengths"]
    )
    tokens = _decode_tokens(sentence["tokens"][rank], sentence["lengths"][rank])
    length = len(tokens)
    # With the row of the step that reads the last word, if it exists.
    weights = sentence["alignments"][rank, : length + 1, : len(source)]
    if not weights[length:].any():
        weights = weights[:length]
    return Translation(
        sentence["translations"][rank].decode(),
        float(sentence["scores"][rank]),
        tokens,
        source,
        weights[:length].copy(),
        sorted(best_links(weights, len(source), length, step)),
        bool(sentence["truncated"] or sentence["unfinished"][rank]),
    )


def _decode_tokens(tokens, length):
    return [token.decode() for token in tokens[:length]]
