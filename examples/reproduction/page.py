"""Page of a plan's records, in HTML and JSON.

    PYTHONPATH=examples python -m reproduction.page PLAN FOLDER

This writes FOLDER/index.html and FOLDER/summary.json from FOLDER/rows.
"""

from __future__ import annotations

import datetime
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luong_keras
from luong_keras.files.atomic_file import write_json, write_text
from luong_keras.report.charts import MAX_CURVES, Chart, Curve, draw
from luong_keras.report.page import environment
from reproduction import comparison
from reproduction.comparison import Interval, Resampling, Rows
from reproduction.plan import Claim, Line, Plan, Table, read_plan, trial_name
from reproduction.record import default_settings, read_record
from reproduction.scores import MEASURES, scores_of

# The rows of figures 5 and 6 of the paper, and of figure 7.
_IN_CURVES = ("base", "reverse", "dropout", "location", "feed", "local-p")
_BY_LENGTH = (*_IN_CURVES[1:], "ensemble")
_ALIGNED = ("feed", "local-m-general", "local-p")
_LENGTHS = 5  # groups of sentences
_SCORES = ("bleu", "bleu_13a", "chrf", "perplexity", "aer")


def write_pages(plan: Plan, records: Path, output: Path) -> list[Path]:
    """Write `index.html` and `summary.json`, or nothing without records.

    The page omits and names records that do not fit the plan's rows, and
    records of another text than most records of their row.
    """
    rows, left_out = _read_rows(plan, records)
    if not rows:
        return []
    resampling = Resampling(rows)
    summary = {
        "tables": [
            _table_values(plan, t, resampling)
            for t in _tried_tables(plan, rows)
        ],
        "claims": [
            _claim_values(v) for v in comparison.verdicts(plan, resampling)
        ],
    }
    template = environment("reproduction").get_template("reproduction.html")
    page = template.render(
        plan=plan.file,
        plan_name=plan.name,
        left_out=left_out,
        samples_drawn=comparison.SAMPLES,
        charts=_learning_curves(_figure_rows(plan, rows, _IN_CURVES)),
        by_length=_length_charts(_figure_rows(plan, rows, _BY_LENGTH)),
        translated=_sample_translations(plan, rows),
        aligned=_ALIGNED,
        rows=[(plan.rows[name], records) for name, records in rows.items()],
        default=default_settings(),
        languages=_languages(plan),
        version=luong_keras.__version__,
        date=datetime.date.today().isoformat(),
        **summary,
    )
    output.mkdir(parents=True, exist_ok=True)
    paths = [output / "index.html", output / "summary.json"]
    write_text(paths[0], page)
    write_json(
        paths[1], {"scale": plan.name, "title": plan.file.title} | summary
    )
    return paths


def _languages(plan: Plan) -> tuple[str, str]:
    return next(iter(plan.rows.values())).config.data.languages


def _figure_rows(plan: Plan, rows: Rows, names: Sequence[str]) -> Rows:
    """Return the rows of a figure; all rows if the plan has no claims."""
    figure_names = names if plan.file.claims else rows
    return {name: rows[name] for name in figure_names if name in rows}


def _read_rows(plan: Plan, folder: Path) -> tuple[Rows, list[str]]:
    """Return the records by row, in the plan's order, and those left out."""
    rows = defaultdict(list)
    left_out = []
    for path in sorted(folder.glob("[!.]*.json")):
        record = read_record(path)
        row = plan.rows.get(record.row)
        if row is None:
            left_out.append(f"{path.name}: no row of this plan")
        elif path.stem != trial_name(record.row, record.seeds) or (
            path.stem not in row.trials(max(record.seeds))
        ):
            left_out.append(f"{path.name}: no trial of this plan")
        elif differs := record.differences(row.config):
            left_out.append(f"{path.name}: other {', '.join(differs)}")
        else:
            rows[record.row].append(record)
    for name, records in rows.items():
        for text, of in (("test", "test"), ("corpus", "training")):
            hashes = [r.text[text] for r in records if text in r.text]
            usual = statistics.mode(hashes or [None])
            for record in list(records):
                if record.text.get(text, usual) != usual:
                    records.remove(record)
                    where = f"{name}, seeds {record.seeds}"
                    left_out.append(f"{where}: another {of} text")
        records.sort(key=lambda record: record.seeds)
    return {name: rows[name] for name in plan.rows if name in rows}, left_out


def _tried_tables(plan: Plan, rows: Rows) -> list[Table]:
    """Return tables with half of their rows tried, and one of other rows."""
    tables = [
        table
        for table in plan.file.tables.values()
        if 2 * sum(x.row in rows for x in table.lines) >= len(table.lines)
    ]
    row_names = {line.row for table in tables for line in table.lines}
    lines = [Line(name, name) for name in rows if name not in row_names]
    if lines:
        tables.append(Table("Other rows" if tables else "Rows", lines))
    return tables


def _table_values(
    plan: Plan, table: Table, resampling: Resampling
) -> dict[str, Any]:
    papers = {line.row: line.bleu for line in table.lines}
    lines = []
    for line in table.lines:
        records = resampling.rows.get(line.row, ())
        after = plan.rows[line.row].after or ""
        bleu, earlier_bleu, gain = line.bleu, papers.get(after), None
        if bleu is not None and earlier_bleu is not None:
            gain = round(bleu - earlier_bleu, 1)
        entry: dict[str, Any] = {
            "name": line.name,
            "row": line.row,
            "trials": len(records),
            "paper": {name: getattr(line, name) for name in MEASURES},
            "change": _gain(line.row, after, resampling),
            "paper_change": gain,
        }
        for score in _SCORES:
            scores = [r.scores[score] for r in records if score in r.scores]
            entry[score] = _mean_score(scores) if scores else None
        lines.append(entry)
    columns = {
        name: any(line[name] or line["paper"][name] for line in lines)
        for name in ("perplexity", "aer")
    }
    columns["paper"] = any(line["paper"]["bleu"] for line in lines)
    columns["paper_change"] = any(line["paper_change"] for line in lines)
    return {
        "title": table.title,
        "section": table.section,
        "source": table.source if columns["paper"] else None,
        "lines": lines,
        "columns": columns,
    }


def _gain(
    row: str, after: str, resampling: Resampling
) -> dict[str, Any] | None:
    """Return the gain of a row over the row that it changes."""
    has_both = all(resampling.has(name, "bleu") for name in (row, after))
    if not has_both or not resampling.are_comparable((row, after)):
        return None
    gain = resampling.difference([(1, row), (-1, after)], "bleu")
    return {"over": after, **gain._asdict()}


def _mean_score(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [score["score"] for score in scores]
    signatures = {s["signature"] for s in scores if "signature" in s}
    return {
        "mean": statistics.fmean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "signatures": sorted(signatures),
    }


def _claim_values(verdict: comparison.Verdict) -> dict[str, Any]:
    claim, value = verdict.claim, verdict.value
    if isinstance(claim, Claim):
        title, _, digits, percent = MEASURES[claim.of]
        computed = f"{title} of {claim.positive}".replace(" - ", " − ")
        if claim.over != "all":
            computed += f", {claim.over} sentences"
    else:
        first, second = (MEASURES[of].title for of in claim.of)
        computed = f"Pearson’s r of {first} and {second}"
        digits, percent = 2, False
    return {
        "claim": claim.claim,
        "section": claim.section,
        "verdict": verdict.verdict,
        "computed": computed,
        "value": _format_interval(value, digits, percent) if value else None,
        "missing": list(verdict.missing),
        "trials": verdict.trials,
        "basis": value.basis if value else verdict.why,
    }


def _format_interval(value: Interval, digits: int, percent: bool) -> str:
    scale, unit = (100, " %") if percent else (1, "")
    texts = [
        f"{scale * x:+.{digits}f}".replace("-", "−")
        for x in value[:3]
        if x is not None
    ]
    text = texts[0] + unit
    if value.low != value.high:
        text += f" ({texts[1]} to {texts[2]})"
    return text


def _learning_curves(rows: Rows) -> list[Chart]:
    """Chart perplexity and BLEU per epoch, as means of the trials."""
    charts = []
    for of, key in (("perplexity", "val_perplexity"), ("BLEU", "val_bleu")):
        points_by_row = {}
        for name, records in rows.items():
            trials = (record.curves.get(key, ()) for record in records)
            epochs = enumerate(zip(*trials, strict=False), start=1)
            points_by_row[name] = [
                (n, statistics.fmean(x)) for n, x in epochs if None not in x
            ]
        charts += _row_charts(f"Validation {of}", "epoch", of, points_by_row)
    return charts


def _length_charts(rows: Rows) -> list[Chart]:
    """Chart BLEU by sentence length, as means of the trials."""
    points_by_row = defaultdict(list)
    for name, records in rows.items():
        lengths = np.array(records[0].sentences["source_lengths"])
        order = np.argsort(lengths, kind="stable")
        for group in np.array_split(order, _LENGTHS):
            weights = np.zeros((1, len(lengths)))
            weights[0, group] = 1
            scores = [scores_of("bleu", r.sentences, weights) for r in records]
            middle = round(float(lengths[group].mean()), 1)
            points_by_row[name].append((middle, float(np.mean(scores))))
    title = f"BLEU of {_LENGTHS} groups of equally many sentences"
    return _row_charts(
        title, "words of the source, the mean of a group", "BLEU", points_by_row
    )


def _row_charts(
    title: str, x_name: str, y_name: str, points: Mapping[str, Sequence[tuple]]
) -> list[Chart]:
    """Chart the rows that have points, if any, at most `MAX_CURVES`."""
    names = [name for name in points if points[name]]
    drawn = enumerate(names[:MAX_CURVES])
    series = [Curve(name, points[name], i) for i, name in drawn]
    key = title.replace(" ", "-")
    if len(names) > MAX_CURVES:
        title += f", {MAX_CURVES} of {len(names)} rows"
    return [draw(title, x_name, y_name, series, key)] if series else []


def _sample_translations(plan: Plan, rows: Rows) -> list[dict[str, Any]]:
    """Return the plan's sentences, as translated and aligned by the rows."""
    language = _languages(plan)[0]
    samples = {
        name: records[0].samples
        for name, records in rows.items()
        if plan.rows[name].config.data.languages[0] == language
    }
    return [
        {
            "sentence": sentence,
            "shown": {
                n: translations[place]
                for n, translations in samples.items()
                if translations[place:]
            },
        }
        for place, sentence in enumerate(plan.file.samples)
    ]


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    print(*write_pages(read_plan(name), Path(folder, "rows"), Path(folder)))
