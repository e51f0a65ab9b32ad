"""The charts of a page of finished rows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from luong_keras.report.charts import MOST_CURVES, Chart, Curve, curves
from reproduction.comparison import Rows
from reproduction.measures import scores_of
from reproduction.plan import Plan

# Figures 5 and 6 of the paper draw some of its systems.
_CURVES = ("base", "reverse", "dropout", "location", "feed", "local-p")
_BY_LENGTH = ("reverse", "dropout", "location", "feed", "local-p", "ensemble")
_LENGTHS = 5  # groups of equally many sentences


def learning_curves(plan: Plan, rows: Rows) -> list[Chart]:
    """Perplexity and BLEU of every epoch, the mean of the trials."""
    rows = _drawn(plan, rows, _CURVES)
    found: list[Chart] = []
    for title, y_name, key in (
        ("Perplexity of the validation text", "perplexity", "val_perplexity"),
        ("BLEU of the validation text", "BLEU", "val_bleu"),
    ):
        drawn = []
        for place, (name, records) in enumerate(rows.items()):
            trials = [r.curves.get(key, []) for r in records]
            points = [
                (float(epoch), statistics.fmean(values))
                for epoch, values in enumerate(zip(*trials, strict=False), 1)
                if all(value is not None for value in values)
            ]
            if points:
                drawn.append(Curve(name, points, place))
        if drawn:
            chart = curves(title, "epoch", y_name, drawn, f"curve-{len(found)}")
            found.append(chart)
    return found


def by_length(plan: Plan, rows: Rows) -> Chart | None:
    """BLEU of groups of sentences of similar lengths, a mean of the trials."""
    rows = _drawn(plan, rows, _BY_LENGTH)
    drawn = []
    for place, (name, records) in enumerate(rows.items()):
        lengths = np.array(records[0].sentences["source_lengths"])
        order = np.argsort(lengths, kind="stable")
        groups = [g for g in np.array_split(order, _LENGTHS) if len(g)]
        weights = np.zeros((len(groups), len(lengths)))
        for number, group in enumerate(groups):
            weights[number, group] = 1
        scores = np.mean(
            [scores_of("bleu", dict(r.sentences), weights) for r in records],
            axis=0,
        )
        middles = [float(lengths[group].mean()) for group in groups]
        points = [
            (round(middle, 1), float(score))
            for middle, score in zip(middles, scores, strict=True)
        ]
        drawn.append(Curve(name, points, place))
    if not drawn:
        return None
    title = f"BLEU of {_LENGTHS} groups of equally many sentences"
    x_name = "words of the source, the mean of a group"
    return curves(title, x_name, "BLEU", drawn, "by-length")


def _drawn(plan: Plan, rows: Rows, of_paper: Sequence[str]) -> Rows:
    """The rows of a chart, as many as it can have."""
    names = of_paper if plan.paper else plan.rows
    return {n: rows[n] for n in [n for n in names if n in rows][:MOST_CURVES]}
