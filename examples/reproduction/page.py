"""The page of a plan's records, and the same as JSON.

    PYTHONPATH=examples python -m reproduction.page PLAN FOLDER

writes FOLDER/index.html and FOLDER/summary.json from FOLDER/rows.
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
from luong_keras.files.atomic_file import write_text
from luong_keras.files.json_file import write_json
from luong_keras.report.charts import MOST_CURVES, Chart, Curve, curves
from luong_keras.report.environment import environment
from reproduction.comparison import SAMPLES, Interval, Resampling, Rows
from reproduction.comparison import Verdict, verdicts
from reproduction.plan import Claim, Line, Plan, Table, read_plan
from reproduction.record import Record, default_settings, read_record, record_path
from reproduction.scores import MEASURES, scores_of

# The rows of figures 5 and 6 of the paper, and of figure 7.
_IN_CURVES = ("base", "reverse", "dropout", "location", "feed", "local-p")
_BY_LENGTH = (*_IN_CURVES[1:], "ensemble")
_ALIGNED = ("feed", "local-m-general", "local-p")
_LENGTHS = 5  # groups of sentences
_SCORES = ("bleu", "bleu_13a", "chrf", "perplexity", "aer")


def write_pages(plan: Plan, records: Path, output: Path) -> list[Path]:
    """Writes `index.html` and `summary.json`.

    Records that are no trials of the plan's rows, and those of another text
    than most with the same settings, are left out and named.

    Args:
        plan: of the rows.
        records: a folder of records.
        output: the folder of both files.

    Returns:
        The files; none without records.
    """
    rows, left_out = _read_rows(plan, records)
    if not rows:
        return []
    resampling = Resampling(rows)
    found = {
        "tables": [_table(plan, t, resampling) for t in _tables(plan, rows)],
        "claims": [_claim(verdict) for verdict in verdicts(plan, resampling)],
    }
    template = environment("reproduction").get_template("reproduction.html")
    page = template.render(
        plan=plan.file,
        plan_name=plan.name,
        left_out=left_out,
        samples_drawn=SAMPLES,
        charts=_learning_curves(plan, rows),
        by_length=_by_length(plan, rows),
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
    head = {"scale": plan.name, "title": plan.file.title}
    write_json(paths[1], head | found)
    return paths


def _languages(plan: Plan) -> tuple[str, str]:
    return next(iter(plan.rows.values())).config.data.languages


def _read_rows(plan: Plan, folder: Path) -> tuple[Rows, list[str]]:
    """The records by their rows, in the plan's order, and those left out."""
    found = defaultdict(list)
    left_out = []
    for path in sorted(folder.glob("[!.]*.json")):
        record = read_record(path)
        row = plan.rows.get(record.row)
        if row is None:
            continue
        own_path = record_path(folder, record)
        if path != own_path:
            left_out.append(f"{path.name}: not named {own_path.name}")
        elif len(record.seeds) != row.models:
            left_out.append(f"{path.name}: {len(record.seeds)} models")
        elif differs := record.differences(row.config):
            left_out.append(f"{path.name}: other {', '.join(differs)}")
        else:
            found[record.row].append(record)
    for name, records in found.items():
        texts = [(r.text["test"], r.text.get("corpus")) for r in records]
        usual = statistics.mode(texts)
        for record, text in zip(list(records), texts, strict=True):
            if text != usual:
                records.remove(record)
                left_out.append(f"{name}, seeds {record.seeds}: another text")
    return {name: found[name] for name in plan.rows if name in found}, left_out


def _tables(plan: Plan, rows: Rows) -> list[Table]:
    """The tables with half of their rows tried, and one of all other rows."""
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
        own, other = line.bleu, papers.get(after)
        known = own is not None and other is not None
        shown: dict[str, Any] = {
            "name": line.name,
            "row": line.row,
            "trials": len(records),
            "paper": {name: getattr(line, name) for name in MEASURES},
            "change": _change(line.row, after, resampling),
            "paper_change": round(own - other, 1) if known else None,
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
    """The gain of a row over the one that it changes."""
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


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim, value = verdict.claim, verdict.value
    digits, percent = 2, False
    if isinstance(claim, Claim):
        title, _, digits, percent = MEASURES[claim.of]
        computed = f"{title} of {claim.positive}".replace(" - ", " − ")
        if claim.over != "all":
            computed += f", {claim.over} sentences"
    else:
        first, second = (MEASURES[of].title for of in claim.of)
        computed = f"Pearson’s r of {first} and {second}"
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
    if value.low == value.high:
        return texts[0] + unit
    return f"{texts[0]}{unit} ({texts[1]} to {texts[2]})"


def _learning_curves(plan: Plan, rows: Rows) -> list[Chart]:
    """Perplexity and BLEU of every epoch, means of the trials."""
    charts: list[Chart] = []
    for of, key in (("perplexity", "val_perplexity"), ("BLEU", "val_bleu")):
        drawn = []
        for place, (name, records) in enumerate(_drawn(plan, rows, _IN_CURVES)):
            epochs = zip(*(r.curves.get(key, []) for r in records), strict=False)
            points = [
                (float(epoch), statistics.fmean(values))
                for epoch, values in enumerate(epochs, 1)
                if None not in values
            ]
            if points:
                drawn.append(Curve(name, points, place))
        if drawn:
            title = f"{of[0].upper()}{of[1:]} of the validation text"
            number = f"curve-{len(charts)}"
            charts.append(curves(title, "epoch", of, drawn, number))
    return charts


def _by_length(plan: Plan, rows: Rows) -> Chart | None:
    """BLEU of groups of sentences of similar lengths, means of the trials."""
    drawn = []
    for place, (name, records) in enumerate(_drawn(plan, rows, _BY_LENGTH)):
        lengths = np.array(records[0].sentences["source_lengths"])
        order = np.argsort(lengths, kind="stable")
        groups = [g for g in np.array_split(order, _LENGTHS) if len(g)]
        chosen = [np.isin(np.arange(len(lengths)), group) for group in groups]
        weights = np.array(chosen, float)
        found = [scores_of("bleu", r.sentences, weights) for r in records]
        middles = [round(float(lengths[group].mean()), 1) for group in groups]
        scores = np.mean(found, axis=0).tolist()
        points = list(zip(middles, scores, strict=True))
        drawn.append(Curve(name, points, place))
    title = f"BLEU of {_LENGTHS} groups of equally many sentences"
    x_name = "words of the source, the mean of a group"
    chart = (title, x_name, "BLEU", drawn, "by-length")
    return curves(*chart) if drawn else None


def _drawn(
    plan: Plan, rows: Rows, of_paper: Sequence[str]
) -> list[tuple[str, Sequence[Record]]]:
    """The rows of a chart, as many as it can have."""
    names = of_paper if plan.file.claims else rows
    return [(name, rows[name]) for name in names if name in rows][:MOST_CURVES]


def _samples(plan: Plan, rows: Rows) -> list[dict[str, Any]]:
    """The plan's sentences as the rows translate and align them."""
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
