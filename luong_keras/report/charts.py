"""Charts as SVG in the colours of the page that contains them."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from luong_keras.missing_package import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Placeholder colours, replaced by the colours of the page (see `_COLOURS`), in
# light and dark mode. They are used for nothing else.
_INK, _FAINT, _PAPER = "#010203", "#010204", "#010205"
_SERIES = tuple(f"#0102{number:02x}" for number in range(6, 14))
MAX_CURVES = len(_SERIES)  # per chart
_COLOURS = {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _PAPER: "var(--paper)",
    **{colour: f"var(--series-{i})" for i, colour in enumerate(_SERIES, 1)},
}
_RC_PARAMS: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text as text
    "text.parse_math": False,  # names may contain dollar signs
    "svg.hashsalt": "luong_keras",
    "font.size": 9,
    **{f"{name}.color": _INK for name in ("text", "xtick", "ytick")},
    **{f"axes.{name}": _INK for name in ("edgecolor", "labelcolor")},
    "axes.titlecolor": _INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _FAINT,
    "figure.facecolor": "none",
    "legend.facecolor": _PAPER,
    "legend.edgecolor": _FAINT,
}
_METADATA = ("Creator", "Date", "Format", "Type")  # left out
_MARKERS = ("o", "^", "D", "v", "P", "X", "*", "<")
_MAX_INNER_NAMES = 3  # maximum number of names for a legend inside the axes


class Curve(NamedTuple):
    """Numbers under one name in the legend.

    Attributes:
        name: Name in the legend.
        points: X and y of the points.
        run: Index of the run, which decides the colour; at most eight runs.
        dashed: Whether the line is dashed.
    """

    name: str
    points: Sequence[tuple[float, float]]
    run: int = 0
    dashed: bool = False


class Chart(NamedTuple):
    """A chart and its numbers.

    Attributes:
        title: Title of the chart.
        svg: The chart as SVG.
        head: Names of the columns of the numbers.
        rows: The numbers, as text.
    """

    title: str
    svg: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def draw(
    title: str,
    x_name: str,
    y_name: str,
    series: Sequence[Curve],
    key: str,
    groups: Sequence[str] = (),
) -> Chart:
    """Draw lines with a mark at each point, or bars side by side.

    Args:
        title: Title of the chart.
        x_name: Name of the x axis.
        y_name: Name of the y axis.
        series: At least one curve, each with at least one point.
        key: Unique name of the chart on the page.
        groups: Names of the groups of bars, whose indices are the x of the
            points; with none, lines are drawn.
    """
    with needs("matplotlib"):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_RC_PARAMS):
        figure = Figure(figsize=(4.6, 3.0), layout="constrained")
        axes = figure.add_subplot()
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(title)
        axes.set_xlabel(x_name)
        axes.set_ylabel(y_name)
        for number, curve in enumerate(series):
            xs, ys = zip(*curve.points, strict=True)
            style: dict[str, Any] = {"color": _SERIES[curve.run]}
            if groups:
                width = 0.8 / len(series)
                shift = (number - (len(series) - 1) / 2) * width
                xs = tuple(x + shift for x in xs)
                axes.bar(xs, ys, 0.92 * width, label=str(number), **style)
            else:
                style["linestyle"] = "--" if curve.dashed else "-"
                style["marker"] = "s" if curve.dashed else _MARKERS[curve.run]
                axes.plot(xs, ys, markersize=3.5, label=str(number), **style)
            for place, (x, y) in zip(xs, curve.points, strict=True):
                # An invisible point, whose tooltip shows its numbers.
                (mark,) = axes.plot(
                    place, y, marker="o", markersize=12, alpha=0
                )
                name = groups[int(x)] if groups else f"{x_name} {x:g}"
                mark.set_gid(
                    f"point {number}-{x:g} {curve.name}, {name}: {y:.4g}"
                )
        numbers = sorted({x for curve in series for x, _ in curve.points})
        if groups:
            axes.set_xticks(range(len(groups)), groups)
            axes.set_ylim(bottom=0)
        else:
            is_integer = all(float(x).is_integer() for x in numbers)
            axes.locator_params(axis="x", integer=is_integer)
        names = [curve.name for curve in series]
        _add_legend(axes, figure, names)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(_METADATA))
    columns = [dict(curve.points) for curve in series]
    rows = [
        [
            groups[int(x)] if groups else f"{x:g}",
            *(f"{c[x]:.4g}" if x in c else "–" for c in columns),
        ]
        for x in numbers
    ]
    svg = _adapt_svg(file.getvalue(), title, key)
    return Chart(title, svg, [x_name, *names], rows)


def _add_legend(axes: Axes, figure: Figure, names: Sequence[str]) -> None:
    """Add a legend, also for names that begin with an underscore."""
    if len(names) == 1:
        return
    if len(names) > _MAX_INNER_NAMES:
        rows = (len(names) + 1) // 2
        figure.set_figheight(figure.get_figheight() + 0.2 * rows)
        legend = figure.legend(
            loc="outside lower center", ncols=2, frameon=False
        )
    else:
        legend = axes.legend(frameon=True, framealpha=0.8)
    # Matplotlib leaves out labels that begin with "_", so set the text later.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def _adapt_svg(svg: str, title: str, key: str) -> str:
    """Return the SVG without its header, in the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)
    # Turn the label of a point into its tooltip, before ids get the key.
    svg = re.sub(
        r'<g id="point (\S+) ([^"]*)">',
        r'<g id="point-\1"><title>\2</title>',
        svg,
    )
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", svg)
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, name)
    svg = re.sub(r"font: [^;\"]*?([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    head = '<svg role="img" aria-label="{}" class="chart"'
    svg = svg.replace("<svg", head.format(html.escape(title)), 1)
    # Without width and height, the chart fills the available space.
    return re.sub(r' width="[^"]*" height="[^"]*"', "", svg, count=1)
