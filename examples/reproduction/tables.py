"""The tables of a page: the paper's figures, and ours beside them."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from reproduction.comparison import Resampling, Rows
from reproduction.measures import MEASURES
from reproduction.plan import Plan
from reproduction.plan_files import Line, Table
from reproduction.record import Record
from reproduction.rows import Row


def tables_of(plan: Plan, resampling: Resampling) -> list[dict[str, Any]]:
    """What the page and the JSON say of every table that is shown."""
    shown = _shown(plan, resampling.rows)
    return [_content(plan, table, resampling) for table in shown]


def _shown(plan: Plan, rows: Rows) -> list[Table]:
    """The tables of which half was tried, and one of all other rows."""
    found = [
        table
        for table in plan.tables.values()
        if 2 * sum(x.row in rows for x in table.lines) >= len(table.lines)
    ]
    on_them = {line.row for table in found for line in table.lines}
    lines = [x for table in plan.tables.values() for x in table.lines]
    papers = {line.row: line for line in reversed(lines)}
    given = [
        papers.get(name, Line(name, name))
        for name in rows
        if name not in on_them
    ]
    # What a line is called says something in its table alone.
    others = [dataclasses.replace(line, name=line.row) for line in given]
    if others:
        title = "Other rows" if found else "Rows"
        sources = [
            table.source
            for table in plan.tables.values()
            if table.source and any(line in table.lines for line in given)
        ]
        found.append(Table(title, others, source="; ".join(sources) or None))
    return found


def _content(
    plan: Plan, table: Table, resampling: Resampling
) -> dict[str, Any]:
    lines = []
    papers = {line.row: line.bleu for line in table.lines}
    for line in table.lines:
        records = resampling.rows.get(line.row, ())
        shown: dict[str, Any] = {
            "name": line.name,
            "row": line.row,
            "trials": len(records),
            "paper": {name: getattr(line, name) for name in MEASURES},
            "change": _change(plan.rows[line.row], resampling),
            "paper_change": _paper_change(plan.rows[line.row], papers),
        }
        for score in ("bleu", "bleu_13a", "chrf", "perplexity", "aer"):
            shown[score] = _mean(records, score)
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


def _change(row: Row, resampling: Resampling) -> dict[str, Any] | None:
    """What a row gains over the one that it changes."""
    if row.after is None or not all(
        resampling.has(name, "bleu") for name in (row.name, row.after)
    ):
        return None
    if not resampling.comparable((row.name, row.after)):
        return None
    terms = [(1, row.name), (-1, row.after)]
    return {
        "over": row.after,
        **resampling.difference(terms, "bleu")._asdict(),
    }


def _paper_change(row: Row, papers: Mapping[str, float | None]) -> float | None:
    """What it gains there in the paper, by a table's figures."""
    own, other = papers.get(row.name), papers.get(row.after or "")
    return None if own is None or other is None else round(own - other, 1)


def _mean(records: Sequence[Record], score: str) -> dict[str, Any] | None:
    values = [r.scores[score]["score"] for r in records if score in r.scores]
    if not values:
        return None
    signatures = {
        record.scores[score]["signature"]
        for record in records
        if "signature" in record.scores.get(score, {})
    }
    return {
        "mean": statistics.fmean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "signatures": sorted(signatures),
    }
