"""Scores of a trained translator on test pairs."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from luong_keras.alignment.aer import (
    alignment_error_rate,
    best_links,
    parse_alignments,
)
from luong_keras.config import DataConfig
from luong_keras.evaluation.length_analysis import bleu_by_length
from luong_keras.evaluation.metrics.metric import Target
from luong_keras.evaluation.metrics.registry import find_metric
from luong_keras.evaluation.translation_scores import (
    BleuScore,
    References,
    by_position,
    corpus_bleu,
)
from luong_keras.files.path_checks import no_link
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras.progress import progress_bar
from luong_keras.text.preprocessing import Preprocessor, preprocessor
from luong_keras.truncation import TruncationInParts, cut_pairs

Answer = TypeVar("Answer")


class Evaluation:
    """A translator beside the text it is measured on.

    Sources, translations and references are text as people write it, and so
    is BLEU.

    Args:
        translator: what to evaluate.
        data: the data settings of its run.
        metrics: further scores, such as that of its run, `training.metric`.
    """

    def __init__(
        self,
        translator: TextTranslator,
        data: DataConfig,
        metrics: Sequence[str] = ("auto",),
    ) -> None:
        self.translator = translator
        self.data = data
        self.metrics = metrics

    def scores(
        self, sources: Sequence[str], references: References
    ) -> tuple[dict[str, Any], list[str]]:
        """The scores of `text_scores`; also the translations.

        `bleu_tokenized` compares the translations before detokenisation with
        references prepared as the training text was, where the run trained
        on tokenised text; with both sides tokenised by sacremoses elsewhere.
        Where the text came tokenised, all of them are of its own tokens.
        """
        best = self.translations(sources)
        translations = [found.text for found in best]
        results = text_scores(
            sources, translations, references, self.data, self.metrics
        )
        if self.data.tokenize or self.data.pretokenized:
            results["bleu_tokenized"] = corpus_bleu(
                *self.tokenized(best, references), tokenize="none"
            )._asdict()
        return results, translations

    def translations(self, sources: Sequence[str]) -> list[Translation]:
        """The best translation of every source."""
        found = with_progress(
            self.translator.nbest, sources, what="translating"
        )
        return [nbest[0] for nbest in found]

    def tokenized(
        self, found: Sequence[Translation], references: References
    ) -> tuple[list[str], References]:
        """Translations and references as `bleu_tokenized` compares them."""
        if not (self.data.tokenize or self.data.pretokenized):
            tokenize = _tokenizer(self.data)
            texts = [tokenize(translation.text) for translation in found]
            return texts, _of_each(tokenize, references)
        # Already tokenised: nothing is tokenised twice.
        prepare = preprocessor(self.data, self.data.target_language) or str
        return (
            self.translator.join([translation.tokens for translation in found]),
            _of_each(prepare, references),
        )

    def perplexity(self, pairs: Sequence[tuple[str, str]]) -> float:
        """Exp of the mean negative log-likelihood of a reference's token.

        Of longer texts the beginning counts; standard error has how many.
        """
        found = self.forced(pairs)
        cut = cut_pairs(found)
        if cut.any:
            print(f"perplexity: {cut.message()}", file=sys.stderr)
        total = sum(scored.log_probability for scored in found)
        words = sum(len(scored.tokens) for scored in found)
        return float(np.exp(-total / words))

    def forced(
        self, pairs: Sequence[tuple[str, str]]
    ) -> list[ScoredTranslation]:
        """Scores of the references by the translator."""
        sources, targets = zip(*pairs, strict=True)
        return with_progress(
            self.translator.score,
            sources,
            targets,
            what="scoring the references",
        )

    def alignment_error_rate(
        self, pairs: Sequence[tuple[str, str]], links: Sequence[str]
    ) -> float:
        """AER of the attention when forced to produce the references."""
        sources, targets = zip(*pairs, strict=True)
        weights = with_progress(
            functools.partial(self.translator.alignments, with_end=True),
            sources,
            targets,
            what="aligning the references",
        )
        step = self.translator.decoding.alignment_step
        found = [best_links(w, w.shape[1], len(w) - 1, step) for w in weights]
        return alignment_error_rate(found, parse_alignments(links))


def text_scores(
    sources: Sequence[str],
    translations: Sequence[str],
    references: References,
    data: DataConfig,
    metrics: Sequence[str] = (),
) -> dict[str, Any]:
    """Scores of translations, whoever made them.

    Args:
        sources: the source of each.
        translations: detokenised.
        references: one a translation, or a list of several for each.
        data: the languages, and whether case counts.
        metrics: further scores, by the names of `training.metric`.

    Returns:
        BLEU in three forms (`bleu_scores`) and by source length; under the
        name of its setting, such as `bleu:zh`, BLEU in the tokenization of
        the target language and each of `metrics`; the number of sentences.

    Example:
        >>> found = text_scores(["a b"], ["x y"], [["z", "x y"]], DataConfig(),
        ...                     ["exact_match"])
        >>> found["exact_match"], found["sentences"]
        ({'score': 100.0}, 1)
    """
    tokenizer = data.bleu_tokenizer
    found = bleu_scores(translations, references, _tokenizer(data), tokenizer)
    groups = bleu_by_length(
        [len(source.split()) for source in sources],
        translations,
        references,
        tokenize=tokenizer,
        lowercase=data.lowercase,
    )
    target = Target(
        data.target_language,
        data.lowercase,
        references=by_position(references)[0],
        pretokenized=data.pretokenized,
    )
    others = {}
    for setting in ("bleu", *metrics):
        try:
            metric = find_metric(setting, target)
        except (ValueError, ImportError, OSError) as error:
            print(
                f"{setting} is left out of the scores. {error}",
                file=sys.stderr,
            )
            continue
        if metric.score is not None and metric.setting != f"bleu:{tokenizer}":
            others[metric.setting] = metric.scored(translations, references)
    return {
        **{name: score._asdict() for name, score in found.items()},
        **others,
        "bleu_by_length": [group._asdict() for group in groups],
        "sentences": len(translations),
    }


def _tokenizer(data: DataConfig) -> Preprocessor:
    """The tokenization that `bleu_tokenized` applies."""
    return Preprocessor(
        data.target_language,
        lowercase=data.lowercase,
        normalize_punctuation=data.normalize_punctuation,
        tokenize=True,
    )


def _of_each(
    change: Callable[[str], str], references: References
) -> References:
    """The references, changed; one or several a sentence."""
    return [
        change(one) if isinstance(one, str) else [change(text) for text in one]
        for one in references
    ]


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Adds one JSON line of results."""
    path = no_link(path, in_place=True)
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        before = file.read()
        # Half a line, of a process that was killed, stays by itself.
        begin = "\n" if before and not before.endswith("\n") else ""
        file.write(begin + json.dumps(results, ensure_ascii=False) + "\n")


def bleu_scores(
    hypotheses: Sequence[str],
    references: References,
    tokenize: Callable[[str], str],
    tokenizer: str = "13a",
) -> dict[str, BleuScore]:
    """Cased, lower-cased and tokenised BLEU of the same translations.

    Luong et al. (2015), section 4, report BLEU of tokenised text and of
    detokenised text ("NIST"); the first is comparable to other systems only
    where the tokenisation is the same.

    Args:
        hypotheses: detokenised translations.
        references: detokenised references, one a hypothesis, or a list of
            several for each.
        tokenize: the tokenisation of `bleu_tokenized`, applied to both.
        tokenizer: sacreBLEU's, of the other two.

    Returns:
        `bleu` (sacreBLEU's default, 13a, cased), `bleu_lowercase` (the same,
        lower-cased) and `bleu_tokenized` (of `tokenize`d text).

    Example:
        >>> scores = bleu_scores(["A b c d."], ["a b c d."], str)
        >>> round(scores["bleu"].score), round(scores["bleu_lowercase"].score)
        (67, 100)
    """
    return {
        "bleu": corpus_bleu(hypotheses, references, tokenizer),
        "bleu_lowercase": corpus_bleu(
            hypotheses, references, tokenizer, lowercase=True
        ),
        "bleu_tokenized": corpus_bleu(
            [tokenize(line) for line in hypotheses],
            _of_each(tokenize, references),
            tokenize="none",
        ),
    }


def with_progress(
    answer: Callable[..., list[Answer]], *columns: Sequence[str], what: str
) -> list[Answer]:
    """Runs a method of a translator on all rows, with a bar.

    What it warns of as cut becomes one line on standard error.

    Args:
        answer: a method of a translator that takes `advance`.
        columns: its arguments, a text a row.
        what: the step, for the bar.

    Returns:
        The answers, in the order of the rows.

    Example:
        >>> def measure(lines, advance):
        ...     return [len(line) for line in lines]
        >>> with_progress(measure, ["bc", "a"], what="measuring")
        [2, 1]
    """
    with (
        progress_bar(what, len(columns[0])) as advance,
        TruncationInParts() as cut,
    ):
        answers = answer(*columns, advance=advance)
    if cut.places.any:
        print(f"{what}: {cut.places.message()}", file=sys.stderr)
    return answers
