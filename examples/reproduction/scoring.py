"""Scores a trained system as a finished row keeps it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luong_keras
from luong_keras.alignment.aer import best_links, parse_alignments
from luong_keras.config import RunConfig
from luong_keras.data.corpus import Corpus
from luong_keras.data.datasets import Datasets
from luong_keras.evaluation.bleu import corpus_bleu
from luong_keras.evaluation.translation_scores import translation_scores
from luong_keras.files.inside import no_link
from luong_keras.files.json_file import read_json
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import Translation
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.evaluation import Evaluation
from luong_keras.recipe.run_reading import load_run
from luong_keras.recipe.sessions import machine
from reproduction.measures import (
    alignment_counts,
    bleu_counts,
    scores_of,
)
from reproduction.record import Record, comparable_settings
from luong_keras.special_tokens import UNK
from luong_keras.training.json_lines_log import JsonLinesLog
from luong_keras.training.run_folder import RunFolder

# What an unknown word is scored as: one word, which no reference has. As it
# stands, BLEU's own tokenisation makes three of it.
_UNKNOWN = "unk"
_CURVES = {
    "val_bleu": "val_bleu",
    "val_perplexity": "val_word_perplexity",
    "perplexity": "word_perplexity",
    "learning_rate": "learning_rate",
    "tokens_per_second": "tokens_per_second",
}


def score_row(
    name: str,
    config: RunConfig,
    runs: Sequence[RunFolder],
    datasets: Datasets,
    samples: Sequence[str],
) -> Record:
    """Translates the test text with one run, or with several as one.

    Args:
        name: of the row.
        config: its settings; of the search they are those that count here.
        runs: trained.
        datasets: with the test pairs.
        samples: sentences to translate for a reader.
    """
    # Of several runs each has its best weights, as of one.
    weights = config.training.final_weights
    parts = load_run(
        [run.path for run in runs], weights, decoding=config.decoding
    )
    evaluation = Evaluation(TextTranslator(*parts), config.data)
    sources, references = map(list, zip(*datasets.test, strict=True))
    found = [_without_unk(t) for t in evaluation.translations(sources)]
    hypotheses, tokenized = evaluation.tokenized(found, references)
    sentences: dict[str, Sequence[float]] = {
        "source_lengths": [len(source.split()) for source in sources],
        **bleu_counts(hypotheses, tokenized),
        **_forced(evaluation, config, datasets),
    }
    bleu = corpus_bleu(hypotheses, tokenized, tokenize="none")
    scores: dict[str, dict[str, Any]] = {
        "bleu": {"score": bleu.score, "signature": bleu.signature}
    }
    texts = [translation.text for translation in found]
    lowercase = config.data.lowercase
    for score in translation_scores(texts, references, lowercase):
        key = {"BLEU": "bleu_13a", "chrF2": "chrf"}.get(score.metric)
        if key is not None:
            scores[key] = {"score": score.score, "signature": score.signature}
    one = np.ones((1, len(sources)))
    for measure, column in (
        ("perplexity", "tokens"),
        ("aer", "alignment_hits"),
    ):
        if column in sentences:
            value = scores_of(measure, dict(sentences), one)
            scores[measure] = {"score": float(value[0])}
    return Record(
        name,
        tuple(_seed(run) for run in runs),
        comparable_settings(config) | {"model.precision": _precision(runs)},
        scores,
        sentences,
        _curves(runs[0]) if len(runs) == 1 else {},
        _samples(evaluation.translator, samples),
        _text(runs, datasets),
        _made(runs),
    )


def _without_unk(found: Translation) -> Translation:
    return dataclasses.replace(
        found,
        text=found.text.replace(UNK, _UNKNOWN),
        tokens=[_UNKNOWN if t == UNK else t for t in found.tokens],
    )


def _forced(
    evaluation: Evaluation, config: RunConfig, datasets: Datasets
) -> dict[str, list]:
    """What the model says of the references: probabilities and links."""
    scored = evaluation.forced(datasets.test)
    columns: dict[str, list] = {
        "negative_log_likelihood": [
            round(-float(one.log_probability), 2) for one in scored
        ],
        "tokens": [len(one.tokens) for one in scored],
    }
    links = datasets.test_links
    # Gold links are of words.
    words = config.data.tokenizer == "words" and not config.data.tokenize
    has_attention = evaluation.translator.translation_model.has_attention
    if has_attention and words and links is not None:
        step = config.decoding.alignment_step
        found = [
            best_links(
                *(one.alignments, one.alignments.shape[1]),
                *(len(one.tokens) - 1, step),
            )
            for one in scored
        ]
        columns |= alignment_counts(found, parse_alignments(links))
    return columns


def _samples(
    translator: TextTranslator, sources: Sequence[str]
) -> list[dict[str, Any]]:
    if not sources:
        return []
    attends = translator.translation_model.has_attention
    return [
        {
            "source": source,
            "text": nbest[0].text,
            "source_tokens": nbest[0].source_tokens,
            "tokens": nbest[0].tokens,
            "percent": np.rint(100 * nbest[0].alignments).astype(int).tolist()
            if attends
            else None,
        }
        for source, nbest in zip(
            sources, translator.nbest(list(sources)), strict=True
        )
    ]


def _curves(run: RunFolder) -> dict[str, list[float | None]]:
    lines = JsonLinesLog(run.log).read()
    return {
        name: [
            None if value is None else round(value, 6)
            for line in lines
            for value in [line.get(key)]
        ]
        for name, key in _CURVES.items()
    }


def _precision(runs: Sequence[RunFolder]) -> str:
    """Precision of the trained models, also where the plan has `auto`."""
    found = {run.read_config()["model"]["precision"] for run in runs}
    return " and ".join(sorted(found))


def _text(runs: Sequence[RunFolder], datasets: Datasets) -> dict[str, Any]:
    texts = {Corpus.open(run.corpus).fingerprint for run in runs}
    test = json.dumps(datasets.test, ensure_ascii=False).encode()
    return {
        "training": read_json(runs[0].data, "what the batches are made of", "")[
            "fingerprint"
        ],
        "corpus": " and ".join(sorted(texts)),
        "test": hashlib.sha256(test).hexdigest(),
        "pairs": len(datasets.test),
    }


def _made(runs: Sequence[RunFolder]) -> dict[str, Any]:
    seconds = 0.0
    for run in runs:
        if run.sessions.exists():
            lines = no_link(run.sessions).read_text(encoding="utf-8")
            for line in lines.splitlines():
                # One may have been cut off as the power was.
                with contextlib.suppress(ValueError):
                    seconds += json.loads(line)["seconds"]
    return {
        "training_seconds": round(seconds),
        "machine": machine(ONE_DEVICE),
        "version": luong_keras.__version__,
        "revision": _revision(),
    }


def _revision() -> str | None:
    """That of the repository this package stands in, if it does."""
    folder = Path(luong_keras.__file__).parents[1]
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _seed(run: RunFolder) -> int:
    return run.read_config()["training"]["seed"]
