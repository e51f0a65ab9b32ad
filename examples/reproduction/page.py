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
from luong_keras.report.charts import MAX_CURVES, Chart, Curve, curves
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
    found = {
        "tables": [_table(plan, t, resampling) for t in _tables(plan, rows)],
        "claims": [_claim(v) for v in comparison.verdicts(plan, resampling)],
    }
    template = environment("reproduction").get_template("reproduction.html")
    page = template.render(
        plan=plan.file,
        plan_name=plan.name,
        left_out=left_out,
        samples_drawn=comparison.SAMPLES,
        charts=_learning_curves(_of_figure(plan, rows, _IN_CURVES)),
        by_length=_by_length(_of_figure(plan, rows, _BY_LENGTH)),
        translated=_samples(plan, rows),
        aligned=_ALIGNED,
        rows=[(plan.rows[name], records) for name, records in rows.items()],
        default=default_settings(),
        languages=_languages(plan),
        version=luong_keras.__version__,
        date=datetime.date.today().isoformat(),
        **found,
    )
    output.mkdir(parents=True, exist_ok=True)
    paths = [output / "index.html", output / "summary.json"]
    write_text(paths[0], page)
    write_json(paths[1], {"scale": plan.name, "title": plan.file.title} | found)
    return paths


def _languages(plan: Plan) -> tuple[str, str]:
    return next(iter(plan.rows.values())).config.data.languages


def _of_figure(plan: Plan, rows: Rows, names: Sequence[str]) -> Rows:
    """Return the rows of a figure; all rows if the plan has no claims."""
    shown = names if plan.file.claims else rows
    return {name: rows[name] for name in shown if name in rows}


def _read_rows(plan: Plan, folder: Path) -> tuple[Rows, list[str]]:
    """Return the records by row, in the plan's order, and those left out."""
    found = defaultdict(list)
    left_out = []
    for path in sorted(folder.glob("[!.]*.json")):
        record = read_record(path)
        row = plan.rows.get(record.row)
        if row is None:
            continue
        if path.stem != trial_name(record.row, record.seeds) or (
            path.stem not in row.trials(max(record.seeds))
        ):
            left_out.append(f"{path.name}: no trial of this plan")
        elif differs := record.differences(row.config):
            left_out.append(f"{path.name}: other {', '.join(differs)}")
        else:
            found[record.row].append(record)
    for name, records in found.items():
        for text, of in (("test", "test"), ("corpus", "training")):
            hashes = [r.text[text] for r in records if text in r.text]
            usual = statistics.mode(hashes or [None])
            for record in list(records):
                if record.text.get(text, usual) != usual:
                    records.remove(record)
                    where = f"{name}, seeds {record.seeds}"
                    left_out.append(f"{where}: another {of} text")
    return {name: found[name] for name in plan.rows if name in found}, left_out


def _tables(plan: Plan, rows: Rows) -> list[Table]:
    """Return tables with half of their rows tried, and one of other rows."""
    found = [
        table
        for table in plan.file.tables.values()
        if 2 * sum(x.row in rows for x in table.lines) >= len(table.lines)
    ]
    shown = {line.row for table in found for line in table.lines}
    others = [Line(name, name) for name in rows if name not in shown]
    if others:
        found.append(Table("Other rows" if found else "Rows", others))
    return found


def _table(plan: Plan, table: Table, resampling: Resampling) -> dict[str, Any]:
    papers = {line.row: line.bleu for line in table.lines}
    lines = []
    for line in table.lines:
        records = resampling.rows.get(line.row, ())
        after = plan.rows[line.row].after or ""
        own, other, gain = line.bleu, papers.get(after), None
        if own is not None and other is not None:
            gain = round(own - other, 1)
        shown: dict[str, Any] = {
            "name": line.name,
            "row": line.row,
            "trials": len(records),
            "paper": {name: getattr(line, name) for name in MEASURES},
            "change": _change(line.row, after, resampling),
            "paper_change": gain,
        }
        for score in _SCORES:
            found = [r.scores[score] for r in records if score in r.scores]
            shown[score] = _mean(found) if found else None
        lines.append(shown)
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


def _change(
    row: str, after: str, resampling: Resampling
) -> dict[str, Any] | None:
    """Return the gain of a row over the row that it changes."""
    if not all(resampling.has(name, "bleu") for name in (row, after)):
        return None
    if not resampling.comparable((row, after)):
        return None
    gain = resampling.difference([(1, row), (-1, after)], "bleu")
    return {"over": after, **gain._asdict()}


def _mean(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [score["score"] for score in scores]
    signatures = {s["signature"] for s in scores if "signature" in s}
    return {
        "mean": statistics.fmean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "signatures": sorted(signatures),
    }


def _claim(verdict: comparison.Verdict) -> dict[str, Any]:
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
        "value": _number(value, digits, percent) if value else None,
        "missing": list(verdict.missing),
        "trials": verdict.trials,
        "basis": value.basis if value else verdict.why,
    }


def _number(value: Interval, digits: int, percent: bool) -> str:
    scale, unit = (100, " %") if percent else (1, "")
    texts = [
        f"{scale * x:+.{digits}f}".replace("-", "−")
        for x in value[:3]
        if x is not None
    ]
    shown = texts[0] + unit
    if value.low != value.high:
        shown += f" ({texts[1]} to {texts[2]})"
    return shown


def _learning_curves(rows: Rows) -> list[Chart]:
    """Chart perplexity and BLEU per epoch, as means of the trials."""
    charts = []
    for of, key in (("perplexity", "val_perplexity"), ("BLEU", "val_bleu")):
        drawn = {}
        for name, records in rows.items():
            trials = (record.curves.get(key, ()) for record in records)
            epochs = enumerate(zip(*trials, strict=False), start=1)
            points = [
                (n, statistics.fmean(x)) for n, x in epochs if None not in x
            ]
            drawn[name] = points
        charts += _chart(f"Validation {of}", "epoch", of, drawn)
    return charts


def _by_length(rows: Rows) -> list[Chart]:
    """Chart BLEU by sentence length, as means of the trials."""
    drawn = defaultdict(list)
    for name, records in rows.items():
        lengths = np.array(records[0].sentences["source_lengths"])
        order = np.argsort(lengths, kind="stable")
        for group in np.array_split(order, _LENGTHS):
            weights = np.zeros((1, len(lengths)))
            weights[0, group] = 1
            found = [scores_of("bleu", r.sentences, weights) for r in records]
            middle = round(float(lengths[group].mean()), 1)
            drawn[name].append((middle, float(np.mean(found))))
    title = f"BLEU of {_LENGTHS} groups of equally many sentences"
    return _chart(
        title, "words of the source, the mean of a group", "BLEU", drawn
    )


def _chart(
    title: str, x_name: str, y_name: str, points: Mapping[str, Sequence[tuple]]
) -> list[Chart]:
    """Chart the rows that have points, if any."""
    names = [name for name in points if points[name]][:MAX_CURVES]
    drawn = [Curve(name, points[name], i) for i, name in enumerate(names)]
    key = title.replace(" ", "-")
    return [curves(title, x_name, y_name, drawn, key)] if drawn else []


def _samples(plan: Plan, rows: Rows) -> list[dict[str, Any]]:
    """Return the plan's sentences, as translated and aligned by the rows."""
    language = _languages(plan)[0]
    asked = {
        name: records[0].samples
        for name, records in rows.items()
        if plan.rows[name].config.data.languages[0] == language
    }
    return [
        {
            "sentence": sentence,
            "shown": {n: own[at] for n, own in asked.items() if own[at:]},
        }
        for at, sentence in enumerate(plan.file.samples)
    ]


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    print(*write_pages(read_plan(name), Path(folder, "rows"), Path(folder)))
