"""Scores of a trained translator on test pairs."""

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from luong_keras.alignment.aer import alignment_error_rate, parse_alignments
from luong_keras.config import DataConfig
from luong_keras.evaluation.length_analysis import bleu_by_source_length
from luong_keras.evaluation.metrics.bleu import target_of
from luong_keras.evaluation.metrics.bleu import tokenizer as sacrebleu_tokenizer
from luong_keras.evaluation.metrics.registry import find_metric
from luong_keras.evaluation.translation_scores import References, corpus_bleu
from luong_keras.files.atomic_file import explain_disk_errors
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import (
    ScoredTranslation,
    Translation,
    in_order,
)
from luong_keras.inference.word_links import links_of_words
from luong_keras.progress import progress_bar
from luong_keras.tables import format_score, pluralize, text_table
from luong_keras.text.preprocessing import Preprocessor, preprocessor
from luong_keras.truncation import TruncatedPlaces, cut_pairs

Result = TypeVar("Result")


class Evaluation:
    """Evaluation of a translator with the data settings of its run.

    Sources, translations and references are detokenised text, on which BLEU
    is computed.

    Args:
        translator: The translator to evaluate.
        data: The data settings of its run.
        metrics: Further metrics, such as the `training.metric` of its run.
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
        """Translate the sources; return `text_scores` and the translations.

        If the run trained on tokenised text, `bleu_tokenized` compares the
        translations before detokenisation with references prepared like the
        training text. Otherwise sacremoses tokenises both sides. If the text
        is tokenised already (`data.pretokenized`), BLEU uses its tokens.
        """
        best = self.translations(sources)
        translations = [translation.text for translation in best]
        results = text_scores(
            sources, translations, references, self.data, self.metrics
        )
        if self.data.tokenize:
            results["bleu_tokenized"] = corpus_bleu(
                *self.tokenized(best, references), tokenize="none"
            )._asdict()
        return results, translations

    def all_scores(
        self,
        pairs: Sequence[tuple[str, str]],
        references: References,
        links: Sequence[str] | None = None,
    ) -> tuple[dict[str, Any], list[str]]:
        """Return `scores` with perplexity and AER, and the translations.

        Args:
            pairs: Detokenised sentence pairs.
            references: The targets, or a list of several per source.
            links: Gold links of each pair, for the AER of a model with
                attention.
        """
        sources = [source for source, _ in pairs]
        results, translations = self.scores(sources, references)
        if not self.translator.translation_model.has_attention:
            links = None
        scored = self.forced(pairs, alignments=links is not None)
        results["perplexity"] = self.perplexity(scored)
        if links is not None:
            results["aer"] = self.alignment_error_rate(scored, pairs, links)
        return results, translations

    def translations(self, sources: Sequence[str]) -> list[Translation]:
        """Return the best translation of each source, without alignments."""
        return _results_of(
            self.translator.best_by_place, sources, what="translating"
        )

    def tokenized(
        self, found: Sequence[Translation], references: References
    ) -> tuple[list[str], References]:
        """Return translations and references tokenised for BLEU."""
        if not self.data.tokenize:
            tokenize = _bleu_preprocessor(self.data)
            texts = [tokenize(translation.text) for translation in found]
            return texts, _map_references(tokenize, references)
        # The translations are tokenised already: only references are prepared.
        prepare = preprocessor(self.data, self.data.target_language) or str
        return (
            self.translator.join([translation.tokens for translation in found]),
            _map_references(prepare, references),
        )

    def forced(
        self, pairs: Sequence[tuple[str, str]], alignments: bool = True
    ) -> list[ScoredTranslation]:
        """Score the references by forced decoding, with `alignments` or not."""
        return _results_of(
            self.translator.scored_by_place,
            *zip(*pairs, strict=True),
            what="scoring the references",
            alignments=alignments,
        )

    def perplexity(self, scored: Sequence[ScoredTranslation]) -> float:
        """Compute the perplexity of reference tokens that `forced` scored.

        Longer texts are cut: only the beginning counts. The number of cut
        texts is printed to standard error.
        """
        cut_pairs(scored).print("perplexity")
        total = sum(reference.log_probability for reference in scored)
        words = sum(len(reference.tokens) for reference in scored)
        return float(np.exp(-total / words))

    def alignment_error_rate(
        self,
        scored: Sequence[ScoredTranslation],
        pairs: Sequence[tuple[str, str]],
        links: Sequence[str],
    ) -> float:
        """Compute the AER of the attention in forced decoding.

        Args:
            scored: The references of the pairs, scored by `forced`.
            pairs: Detokenised sentence pairs.
            links: Gold links of each pair, between its words by sacreBLEU's
                13a.
        """
        sources, targets = zip(*pairs, strict=True)
        step = self.translator.decoding.alignment_step
        words = sacrebleu_tokenizer("13a")
        rows = zip(
            scored, map(words, sources), map(words, targets), strict=True
        )
        model_links = [links_of_words(*row, step) for row in rows]
        return alignment_error_rate(model_links, parse_alignments(links))


def text_scores(
    sources: Sequence[str],
    translations: Sequence[str],
    references: References,
    data: DataConfig,
    metrics: Sequence[str] = (),
) -> dict[str, Any]:
    """Score translations from any source.

    Args:
        sources: The source sentences.
        translations: Their detokenised translations.
        references: One per translation, or a list of several per translation.
        data: The data settings, for the languages and the case.
        metrics: Further metrics, by the names of `training.metric`.

    Returns:
        BLEU in three forms and by source length; BLEU with the tokenisation of
        the target language and each of `metrics`, under the name of the
        setting, such as `bleu:zh`; the number of sentences. Luong et al.
        (2015), section 4, report BLEU of tokenised text (`bleu_tokenized`, by
        Moses) and of detokenised text ("NIST"; here `bleu`, by default with
        sacreBLEU's 13a). Tokenised BLEU is comparable between systems only if
        they use the same tokenisation.

    Example:
        >>> scores = text_scores(["a b"], ["x y"], [["z", "x y"]], DataConfig(),
        ...                      ["exact_match"])
        >>> scores["exact_match"], scores["sentences"]
        ({'score': 100.0}, 1)
    """
    tokenizer = "none" if data.pretokenized else "13a"
    tokenize = _bleu_preprocessor(data)
    scores = {
        "bleu": corpus_bleu(translations, references, tokenizer),
        "bleu_lowercase": corpus_bleu(
            translations, references, tokenizer, lowercase=True
        ),
        "bleu_tokenized": corpus_bleu(
            [tokenize(line) for line in translations],
            _map_references(tokenize, references),
            tokenize="none",
        ),
    }
    groups = bleu_by_source_length(sources, translations, references, data)
    target = target_of(data, references)
    metric_scores = {}
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
            metric_scores[metric.setting] = metric.scored(
                translations, references
            )
    return {
        **{name: score._asdict() for name, score in scores.items()},
        **metric_scores,
        "bleu_by_length": [group._asdict() for group in groups],
        "sentences": len(translations),
    }


def _bleu_preprocessor(data: DataConfig) -> Preprocessor:
    """Return the preprocessor for `bleu_tokenized`, which tokenises text."""
    return Preprocessor(
        data.target_language,
        lowercase=data.lowercase,
        normalize_punctuation=data.normalize_punctuation,
        tokenize=not data.pretokenized,
    )


def _map_references(
    function: Callable[[str], str], references: References
) -> References:
    """Apply a function to each reference, one or several per sentence."""
    return [
        function(reference)
        if isinstance(reference, str)
        else [function(text) for text in reference]
        for reference in references
    ]


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Append the results to a file as one line of JSON."""
    line = json.dumps(results, ensure_ascii=False).encode() + b"\n"
    with (
        explain_disk_errors(path, atomic=False),
        path.open("ab+") as file,
    ):
        file.seek(0)
        before = file.read()
        if last := before[before.rfind(b"\n") + 1 :]:
            try:
                json.loads(last)
                file.write(b"\n")
            except ValueError:  # the incomplete line of a killed process
                file.truncate(len(before) - len(last))
        file.write(line)


def format_results(results: dict[str, Any]) -> str:
    """Return tables of the facts, the scores and the comparison.

    Args:
        results: A line of the results.jsonl of a run.

    Example:
        >>> found = {"set": "dev", "sentences": 2, "perplexity": 3.14159}
        >>> print(format_results(found))
        pairs  dev, 2 sentences
        <BLANKLINE>
        score              signature
        perplexity  3.142
    """
    search = results.get("decoding", {})
    sentences = pluralize(results["sentences"], "sentence")
    facts = {
        "pairs": f"{results['set']}, {sentences}",
        "translations": results.get("translations"),
        "weights": results.get("weights"),
        "baseline": results.get("baseline"),
        "search": search
        and f"{search['search']}, beam size {search['beam_size']}",
    }
    scores: list[tuple[str, ...]] = [("score", "", "signature")]
    for name, result in results.items():
        if isinstance(result, dict) and "score" in result:
            value = format_score(result["score"])
            scores.append((name, value, result.get("signature", "")))
        elif isinstance(result, float):
            scores.append((name, f"{result:.4g}", ""))
    fact_rows = [(name, str(fact)) for name, fact in facts.items() if fact]
    tables: list[list[tuple[str, ...]]] = [[*fact_rows], scores]
    if "compared" in results:
        rows: list[tuple[str, ...]] = [("score", "baseline", "this", "p")]
        for score in results["compared"]:
            rows.append(
                (
                    score["metric"],
                    f"{score['first']:.2f} ± {score['first_interval']:.2f}",
                    f"{score['second']:.2f} ± {score['second_interval']:.2f}",
                    f"{score['p_value']:.3f}",
                )
            )
        tables.append(rows)
    return "\n\n".join(map(text_table, tables))


def _results_of(method, *columns, what, alignments=False):
    """Return the results of all rows, in order, from those by their places.

    Alignments, the arrays that take most memory, are empty by default.
    """
    nothing = np.zeros((0, 0))

    def run(*columns, advance):
        found = method(*columns, advance)
        if not alignments:
            found = (
                (place, dataclasses.replace(result, alignments=nothing))
                for place, result in found
            )
        return in_order(found)

    return with_progress(run, *columns, what=what)


def with_progress(
    method: Callable[..., list[Result]], *columns: Sequence[str], what: str
) -> list[Result]:
    """Run a method of a translator on all rows, with a progress bar.

    Warnings about cut texts become one line on standard error.

    Args:
        method: A method of a translator that takes `advance`.
        columns: The arguments of the method, one text per row.
        what: The name of the step, for the bar.

    Returns:
        The results of the method, in the order of the rows.

    Example:
        >>> def measure(lines, advance):
        ...     return [len(line) for line in lines]
        >>> with_progress(measure, ["bc", "a"], what="measuring")
        [2, 1]
    """
    with (
        progress_bar(what, len(columns[0])) as advance,
        TruncatedPlaces() as cut,
    ):
        results = method(*columns, advance=advance)
    cut.print(what)
    return results
