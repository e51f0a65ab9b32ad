"""HTML page of a run or of two runs."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import luong_keras
from luong_keras.config.checks import check_integers
from luong_keras.evaluation.length_analysis import bleu_by_source_length
from luong_keras.evaluation.metrics.bleu import target_of, tokenizer_of
from luong_keras.evaluation.metrics.registry import find_metric
from luong_keras.evaluation.translation_scores import (
    paired_test,
    translation_scores,
)
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import output_file
from luong_keras.missing_package import needs
from luong_keras.progress import progress_bar
from luong_keras.report.charts import Chart, Curve, draw
from luong_keras.report.contents import (
    RunRecord,
    add_alignments,
    examples,
    read_run,
    session_summary,
    setting_rows,
)
from luong_keras.tables import format_score

if TYPE_CHECKING:
    import jinja2


# Charts, with the keys of the epoch logs of a run of the recipe.
_PERPLEXITY = (
    "Perplexity of a target token",
    "perplexity",
    (
        ("word_perplexity", "training objective"),
        ("val_word_perplexity", "validation"),
    ),
)
_CURVES = (
    ("Loss", "loss", (("loss", "training"), ("val_loss", "validation"))),
    ("Learning rate", "learning rate", (("learning_rate", "rate"),)),
    (
        "Training speed",
        "target tokens per second",
        (("tokens_per_second", "speed"),),
    ),
)


def write_page(
    folders: Sequence[str | Path],
    output: str | Path,
    count: int = 5,
    alignments: bool = True,
    samples: int = 1000,
) -> Path:
    """Write a run, or two runs side by side, as one file of HTML.

    The file contains its charts, style and scripts, and loads nothing from
    elsewhere. The runs may still be in training, and then have no scores.

    Args:
        folders: Folders of one run, or of two runs with the same test pairs.
        output: The file to write.
        count: Number of translations of each kind to show.
        alignments: Whether to load the models and draw their attention weights.
        samples: Number of samples of the paired test, and of the bootstrap of
            the intervals.

    Returns:
        The file.

    Raises:
        FileNotFoundError: If a folder has no run.
        ValueError: If two runs have different test pairs, `output` is no file,
            or for another number of folders or numbers below 1.
        ImportError: If a package of the extra `train` is missing.
    """
    if isinstance(folders, str | Path) or len(folders) not in (1, 2):
        raise ValueError(
            "Expected: a list of the folder of one run, or of two. Received: "
            f"{folders!r}."
        )
    check_integers(count=count, samples=samples)
    output = output_file(output)
    templates = environment()
    runs = _read_runs(folders)
    scored = bool(runs[0].translations) and all(r.translations for r in runs)
    groups = examples(runs, count) if scored else []
    if alignments:
        add_alignments(groups, runs)
    page = templates.get_template("page.html").render(
        title=" and ".join(run.name for run in runs),
        runs=runs,
        scores=_score_rows(runs),
        compared=_compare_runs(runs, samples) if scored else [],
        samples=samples,
        charts=_epoch_charts(runs),
        by_length=_length_chart(runs),
        groups=groups,
        aligned=any(
            translation["alignment"]
            for group in groups
            for example in group["examples"]
            for translation in example["translations"]
        ),
        settings=setting_rows(runs),
        sessions=[session_summary(run) for run in runs],
        version=luong_keras.__version__,
        date=datetime.date.today().isoformat(),
    )
    write_text(output, page)
    return output


def _read_runs(folders: Sequence[str | Path]) -> list[RunRecord]:
    runs = [read_run(folder) for folder in folders]
    if len({run.name for run in runs}) < len(runs):
        runs = [
            dataclasses.replace(run, name=str(folder))
            for run, folder in zip(runs, folders, strict=True)
        ]
    first, last = runs[0], runs[-1]
    if (
        first.translations
        and last.translations
        and (first.sources, first.references) != (last.sources, last.references)
    ):
        raise ValueError(
            "Two runs are compared on the same test pairs. Expected: "
            f"{len(first.sources)} pairs as in {first.folder}. Received: "
            f"{len(last.sources)} in {last.folder}, different or in "
            "another order. Train both with the same --test, or write "
            "a page for each."
        )
    return runs


def _score_rows(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return one row per score, with the values of all runs."""
    rows: dict[str, dict[str, Any]] = {}
    for index, run in enumerate(runs):
        if not run.translations:
            continue
        with progress_bar(f"BLEU, chrF and TER of {run.name}"):
            data = run.config.data
            common_scores = translation_scores(
                run.translations,
                run.references,
                data.lowercase,
                _bleu_tokenizer(run),
            )
        signatures = [score.signature for score in common_scores]
        # The metric that chose the epoch, and others that only this run has,
        # precede the common scores.
        run_scores = [
            (
                name.replace("_", " "),
                format_score(value["score"]),
                value.get("signature", ""),
            )
            for name, value in run.results.items()
            if isinstance(value, dict) and "score" in value
            # Leave out plain BLEU, and BLEU without case or of tokenised text.
            if name not in ("bleu", "bleu_lowercase", "bleu_tokenized")
            and value.get("signature") not in signatures
        ]
        run_scores += [
            (score.metric, format_score(score.score), score.signature)
            for score in common_scores
        ]
        for name, title, form in (
            ("perplexity", "perplexity of the references", "{:.2f}"),
            ("aer", "alignment error rate", "{:.1%}"),
        ):
            if run.results.get(name) is not None:
                run_scores.append((title, form.format(run.results[name]), ""))
        for title, text, signature in run_scores:
            row = rows.setdefault(
                title,
                {"name": title, "values": ["–"] * len(runs), "signatures": []},
            )
            row["values"][index] = text
            if signature and signature not in row["signatures"]:
                row["signatures"].append(signature)
    return list(rows.values())


def _bleu_tokenizer(run: RunRecord) -> str:
    """Return the BLEU tokenizer for the target language of a run."""
    return tokenizer_of(target_of(run.config.data, run.references))[0]


def _validation_curves(runs: Sequence[RunRecord]) -> list[Any]:
    """Return the charts of BLEU and of the metrics of the runs."""
    settings = ["bleu", *(run.config.training.metric for run in runs)]
    titles = {}
    for setting in settings:
        try:
            metric = find_metric(setting.partition(":")[0])
            key, title = metric.key, metric.title or metric.name
        except ValueError:  # A metric that is not registered here.
            key, title = f"val_{setting}", setting
        if key != "val_loss":
            titles[key] = title
    return [
        (f"Validation {title}", title, ((key, title),))
        for key, title in titles.items()
    ]


def _compare_runs(runs: Sequence[RunRecord], samples: int) -> list[Any]:
    if len(runs) < 2:
        return []
    first, second = runs
    with progress_bar("paired test"):
        return paired_test(
            first.translations,
            second.translations,
            first.references,
            lowercase=any(run.config.data.lowercase for run in runs),
            samples=samples,
            tokenize=_bleu_tokenizer(first),
        )


def _epoch_charts(runs: Sequence[RunRecord]) -> list[Chart]:
    charts: list[Chart] = []
    for title, y_name, parts in (
        _PERPLEXITY,
        *_validation_curves(runs),
        *_CURVES,
    ):
        series = []
        for index, run in enumerate(runs):
            for number, (key, name) in enumerate(parts):
                if len(runs) > 1:
                    name = f"{run.name}, {name}" if len(parts) > 1 else run.name
                points = run.epoch_values(key)
                if points:
                    series.append(Curve(name, points, index, bool(number)))
        if series:
            key = f"chart-{len(charts)}"
            charts.append(draw(title, "epoch", y_name, series, key))
    return charts


def _length_chart(runs: Sequence[RunRecord]) -> Chart | None:
    series: list[Curve] = []
    groups: list[str] = []
    lowercase = any(run.config.data.lowercase for run in runs)
    # Words are counted alike, so groups are equal.
    data = dataclasses.replace(runs[0].config.data, lowercase=lowercase)
    for index, run in enumerate(runs):
        if not run.translations:
            continue
        length_groups = bleu_by_source_length(
            run.sources, run.translations, run.references, data
        )
        groups = [
            f"{max(g.low, 1)}–{g.high}\n{g.sentences}"
            if g.high is not None
            else f"{g.low} or more\n{g.sentences}"
            for g in length_groups
        ]
        name = run.name if len(runs) > 1 else "BLEU"
        points = [(float(i), g.bleu) for i, g in enumerate(length_groups)]
        series.append(Curve(name, points, index))
    if not series:
        return None
    x_name = "source words; below, the number of sentences"
    title = "BLEU by the length of the source"
    return draw(title, x_name, "BLEU", series, "by-length", groups)


def environment(*packages: str) -> jinja2.Environment:
    """Return the Jinja environment of the templates.

    Args:
        packages: Further packages with a folder `templates`.

    Raises:
        ImportError: If Jinja2 is not installed.
    """
    with needs("jinja2"):
        import jinja2
    loaders = [
        jinja2.PackageLoader(package)
        for package in (*packages, "luong_keras.report")
    ]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
