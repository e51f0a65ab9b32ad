"""Curves as SVG that takes its colours from the page it stands in."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from luong_keras.missing_package import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What is drawn in one of these has the colour of the page that stands beside
# it, in the dark as well. Nothing else is drawn in them.
_INK, _FAINT, _PAPER = "#010203", "#010204", "#010205"
_SERIES = tuple(f"#0102{number:02x}" for number in range(6, 14))
MAX_CURVES = len(_SERIES)  # of one chart
_COLOURS = {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _PAPER: "var(--paper)",
    **{colour: f"var(--series-{i})" for i, colour in enumerate(_SERIES, 1)},
}
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # a name may have dollar signs
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
_MARKERS = ("o", "o", "^", "D", "v", "P", "X", "*")
_FEW = 3  # curves whose names have room beside them


class Curve(NamedTuple):
    """Numbers of one name.

    Attributes:
        name: in the legend.
        points: their x and y.
        run: the place of the run, which has the colour; eight at most.
        dashed: whether the line is broken.
    """

    name: str
    points: Sequence[tuple[float, float]]
    run: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A drawing and its numbers.

    Attributes:
        title: what it shows.
        svg: the drawing.
        head: the names of the columns of its numbers.
        rows: the numbers, as text.
    """

    title: str
    svg: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def curves(
    title: str, x_name: str, y_name: str, drawn: Sequence[Curve], key: str
) -> Chart:
    """Lines with a mark at every point.

    Args:
        title: of the drawing.
        x_name: of the axis.
        y_name: likewise.
        drawn: at least one, each with a point.
        key: what no other drawing of the page is called.
    """
    with _style() as axes:
        for number, curve in enumerate(drawn):
            colour = _SERIES[curve.run]
            xs, ys = zip(*curve.points, strict=True)
            axes.plot(
                *(xs, ys),
                color=colour,
                linestyle="--" if curve.dashed else "-",
                marker="s" if curve.dashed else _MARKERS[curve.run],
                markersize=3.5,
                label=str(number),
            )
            for x, y in curve.points:
                label = f"{curve.name}, {x_name} {x:g}: {y:.4g}"
                _target(axes, x, y, f"{number}-{x:g}", label)
        whole = all(float(x).is_integer() for c in drawn for x, _ in c.points)
        axes.locator_params(axis="x", integer=whole)
        _legend(axes, [curve.name for curve in drawn])
        svg = _drawn(axes, title, x_name, y_name, key)
    return Chart(title, svg, *_numbers(x_name, drawn))


def bars(
    title: str,
    x_name: str,
    y_name: str,
    groups: Sequence[str],
    drawn: Sequence[Curve],
    key: str,
) -> Chart:
    """Bars side by side.

    Args:
        title: of the drawing.
        x_name: of the axis.
        y_name: likewise.
        groups: the names of what the bars stand over.
        drawn: the y of the groups by their places, a row of bars each.
        key: what no other drawing of the page is called.
    """
    width = 0.8 / len(drawn)
    with _style() as axes:
        for number, curve in enumerate(drawn):
            shift = (number - (len(drawn) - 1) / 2) * width
            axes.bar(
                [x + shift for x, _ in curve.points],
                [y for _, y in curve.points],
                width=0.92 * width,
                color=_SERIES[curve.run],
                label=str(number),
            )
            for x, y in curve.points:
                label = f"{curve.name}, {groups[int(x)]}: {y:.1f}"
                _target(axes, x + shift, y, f"{number}-{x:g}", label)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylim(bottom=0)
        _legend(axes, [curve.name for curve in drawn])
        svg = _drawn(axes, title, x_name, y_name, key)
    head, rows = _numbers(x_name, drawn)
    rows = [[groups[int(float(row[0]))], *row[1:]] for row in rows]
    return Chart(title, svg, head, rows)


@contextlib.contextmanager
def _style() -> Iterator[Axes]:
    """Axes of a figure of the page."""
    with needs("matplotlib"):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_RC):
        axes = Figure(figsize=(4.6, 3.0), layout="constrained").add_subplot()
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        yield axes


def _legend(axes: Axes, names: Sequence[str]) -> None:
    """Names all that was drawn, whatever the names begin with."""
    if len(names) == 1:
        return
    if len(names) > _FEW:
        figure = cast("Figure", axes.figure)
        rows = (len(names) + 1) // 2
        figure.set_figheight(figure.get_figheight() + 0.2 * rows)
        legend = figure.legend(
            loc="outside lower center", ncols=2, frameon=False
        )
    else:
        legend = axes.legend(frameon=True, framealpha=0.8)
    # As a label, a name with a "_" in front would be left out.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def _target(axes: Axes, x: float, y: float, place: str, label: str) -> None:
    """A spot that says its numbers when a pointer comes over it."""
    (mark,) = axes.plot(x, y, marker="o", markersize=12, alpha=0)
    mark.set_gid(f"point {place} {label}")


def _drawn(axes: Axes, title: str, x_name: str, y_name: str, key: str) -> str:
    axes.set_title(title)
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    file = io.StringIO()
    figure = cast("Figure", axes.figure)
    figure.savefig(file, format="svg", metadata={"Date": None})
    return _for_the_page(file.getvalue(), title, key)


def _for_the_page(svg: str, title: str, key: str) -> str:
    """The drawing without its head, in the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)
    # A spot with its words, before the words become a part of its name.
    svg = re.sub(
        r'<g id="point (\S+) ([^"]*)">',
        r'<g id="point-\1"><title>\2</title>',
        svg,
    )
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'href="#', f'href="#{key}-', svg)
    svg = re.sub(r"url\(#", f"url(#{key}-", svg)
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, name)
    svg = re.sub(r"font: [^;\"]*?([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    head = '<svg role="img" aria-label="{}" class="chart"'
    svg = svg.replace("<svg", head.format(_escaped(title)), 1)
    # As wide as there is room.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)


def _escaped(text: str) -> str:
    from markupsafe import escape

    return str(escape(text))


def _numbers(
    x_name: str, drawn: Sequence[Curve]
) -> tuple[list[str], list[list[str]]]:
    places = sorted({x for curve in drawn for x, _ in curve.points})
    columns = [dict(curve.points) for curve in drawn]
    rows = [
        [f"{x:g}", *(f"{c[x]:.4g}" if x in c else "–" for c in columns)]
        for x in places
    ]
    return [x_name, *(curve.name for curve in drawn)], rows
