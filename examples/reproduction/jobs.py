"""Jobs of the workflow in `Snakefile`, each in a separate process.

python -m reproduction.jobs train|distill|score NAME PLAN OUTPUT [FILES]
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import luong_keras
from luong_keras import RunConfig, Translator
from luong_keras.alignment.aer import best_links, parse_alignments
from luong_keras.config.values import with_values
from luong_keras.data import Corpus, Datasets, load_datasets
from luong_keras.data.sources.source_kinds import one_line
from luong_keras.evaluation.translation_scores import (
    by_position,
    corpus_bleu,
    translation_scores,
)
from luong_keras.inference.translation import Translation, best_of
from luong_keras.recipe import Evaluation, run_recipe
from luong_keras.report.contents import RunRecord, read_run
from luong_keras.special_tokens import UNK
from reproduction.plan import Plan, Row, read_plan, with_folders
from reproduction.record import Record, comparable_settings, write_record
from reproduction.scores import alignment_counts, bleu_counts, scores_of

# Replaces `<unk>`, which BLEU's tokenisation splits into three words. No
# reference has this word.
_UNKNOWN = "unk"


@dataclass(frozen=True)
class Jobs:
    """Jobs for training, distillation and scoring.

    Attributes:
        plan: The plan with the rows.
        output: The folder of runs, distilled texts and records.
        files: The folder of the text, for plans that need one.
    """

    plan: Plan
    output: Path
    files: Path | None

    def train(self, name: str) -> None:
        """Train a run, from its snapshot if it was interrupted."""
        row, (seed,) = self.plan.trial(name)
        config = with_values(self._config(row), {"training.seed": seed})
        with contextlib.suppress(KeyboardInterrupt):  # A snapshot exists.
            if run_recipe(config, self._runs(name)[0], train_only=True):
                return
        sys.exit("Stopped with a snapshot; the same command continues.")

    def distill(self, name: str) -> None:
        """Translate a row's training text with its models.

        Sequence-level knowledge distillation: Kim and Rush (2016).
        """
        row = self.plan.rows[name]
        pairs = load_datasets(self._config(row).data).train()
        sources = [source for source, target in pairs if source and target]
        (trial,) = row.trials(1)
        translations = self._translator(trial).translate_lines(sources)
        path = self.output / "distilled" / f"{name}.tsv"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for pair in zip(sources, translations, strict=True):
                file.write("\t".join(map(one_line, pair)) + "\n")

    def score(self, name: str) -> None:
        """Write the record of a trial."""
        row, seeds = self.plan.trial(name)
        config = self._config(row)
        datasets = load_datasets(config.data)
        evaluation = Evaluation(self._translator(name), config.data)
        scores, sentences = scores_and_statistics(evaluation, datasets)
        runs = [read_run(folder) for folder in self._runs(name)]
        precisions = {run.config.model.precision for run in runs}
        settings = comparable_settings(row.config)
        settings["model.precision"] = " and ".join(sorted(precisions))
        texts = {Corpus.open(run.folder / "corpus").fingerprint for run in runs}
        test = json.dumps(datasets.test, ensure_ascii=False).encode()
        record = Record(
            row=row.name,
            seeds=seeds,
            settings=settings,
            scores=scores,
            sentences=sentences,
            curves=_epoch_curves(runs[0]) if len(runs) == 1 else {},
            samples=_translate_samples(evaluation, self.plan.file.samples),
            text={
                "corpus": " and ".join(sorted(texts)),
                "test": hashlib.sha256(test).hexdigest(),
            },
            made=_provenance(runs),
        )
        write_record(self.output / "rows" / f"{name}.json", record)

    def _config(self, row: Row) -> RunConfig:
        distilled = self.output / "distilled"
        return with_folders(row.config, self.files, distilled)

    def _runs(self, trial: str) -> list[Path]:
        return [self.output / "runs" / run for run in self.plan.runs(trial)]

    def _translator(self, trial: str) -> Translator:
        config = self.plan.trial(trial)[0].config
        weights = config.training.final_weights
        return Translator.from_run(self._runs(trial), weights, config.decoding)


def scores_and_statistics(
    evaluation: Evaluation, datasets: Datasets
) -> tuple[dict[str, dict[str, Any]], dict[str, Sequence[float]]]:
    """Return the scores of the test text and the statistics of sentences."""
    sources, references = map(list, zip(*datasets.test, strict=True))
    translations = [_replace_unk(t) for t in evaluation.translations(sources)]
    hypotheses, tokenized = evaluation.tokenized(translations, references)
    (tokenized,) = by_position(tokenized)
    sentences: dict[str, Sequence[float]] = {
        "source_lengths": [len(source.split()) for source in sources],
        **bleu_counts(hypotheses, tokenized),
        **_reference_statistics(evaluation, datasets),
    }
    bleu = corpus_bleu(hypotheses, tokenized, tokenize="none")
    scores = {"bleu": {"score": bleu.score, "signature": bleu.signature}}
    texts = [translation.text for translation in translations]
    lowercase = evaluation.data.lowercase
    for metric in translation_scores(texts, references, lowercase):
        key = {"BLEU": "bleu_13a", "chrF2": "chrf"}.get(metric.metric)
        if key is not None:
            scores[key] = {"score": metric.score, "signature": metric.signature}
    all_sentences = np.ones((1, len(sources)))
    for measure, column in (
        ("perplexity", "tokens"),
        ("aer", "alignment_hits"),
    ):
        if column in sentences:
            (value,) = scores_of(measure, sentences, all_sentences).tolist()
            scores[measure] = {"score": value}
    return scores, sentences


def _replace_unk(translation: Translation) -> Translation:
    """Replace the symbol for unknown words in a translation."""
    tokens = [
        _UNKNOWN if token == UNK else token for token in translation.tokens
    ]
    text = translation.text.replace(UNK, _UNKNOWN)
    return dataclasses.replace(translation, text=text, tokens=tokens)


def _reference_statistics(
    evaluation: Evaluation, datasets: Datasets
) -> dict[str, list]:
    """Return probabilities and links of the references, when forced."""
    scored = evaluation.forced(datasets.test)
    costs = [
        round(-float(reference.log_probability), 2) for reference in scored
    ]
    lengths = [len(reference.tokens) for reference in scored]
    columns: dict[str, list] = {
        "negative_log_likelihood": costs,
        "tokens": lengths,
    }
    # Gold links refer to the words of the text.
    data, gold = evaluation.data, datasets.test_links
    words = data.tokenizer == "words" and not data.tokenize
    if gold and words and _has_attention(evaluation):
        step = evaluation.translator.decoding.alignment_step
        links = []
        for reference, length in zip(scored, lengths, strict=True):
            weights = reference.alignments
            links.append(
                best_links(weights, weights.shape[1], length - 1, step)
            )
        columns |= alignment_counts(links, parse_alignments(gold))
    return columns


def _has_attention(evaluation: Evaluation) -> bool:
    return evaluation.translator.translation_model.has_attention


def _translate_samples(
    evaluation: Evaluation, sentences: Sequence[dict[str, str]]
) -> list[dict[str, Any]]:
    samples = []
    sources = [sentence["source"] for sentence in sentences]
    for translation in map(best_of, evaluation.translator.nbest(sources)):
        percent = np.rint(100 * translation.alignments).astype(int).tolist()
        names = ("text", "source_tokens", "tokens")
        sample = {name: getattr(translation, name) for name in names}
        sample["percent"] = percent if _has_attention(evaluation) else None
        samples.append(sample)
    return samples


def _epoch_curves(run: RunRecord) -> dict[str, list[float | None]]:
    names = {"val_bleu": "val_bleu", "val_perplexity": "val_word_perplexity"}
    return {
        name: [line.get(key) for line in run.epochs]
        for name, key in names.items()
    }


def _provenance(runs: Sequence[RunRecord]) -> dict[str, Any]:
    sessions = [session for run in runs for session in run.sessions]
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always"]
    described = subprocess.run(
        [*git, "--dirty"], capture_output=True, text=True
    )
    return {
        "training_seconds": round(sum(s["seconds"] for s in sessions)),
        "machine": sessions[-1]["machine"],
        "version": luong_keras.__version__,
        "revision": described.stdout.strip() or None,
    }


if __name__ == "__main__":
    action, name, plan, output, *files = sys.argv[1:]
    folder = Path(files[0]) if files else None
    getattr(Jobs(read_plan(plan), Path(output), folder), action)(name)
