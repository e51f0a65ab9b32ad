"""Plots of alignments and of BLEU by length, and the fonts for them.

What is written to a file, or drawn into given axes, uses no pyplot: it changes
no global state and needs no display.
"""

from __future__ import annotations

import contextlib
import functools
import os
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from luong_keras.evaluation.length_analysis import LengthGroup
from luong_keras.files.atomic_file import atomic_path
from luong_keras.missing_package import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle


_MARKERS = "osv^Dx*P"


def plot_alignment(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: np.ndarray,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    links: Sequence[tuple[int, int]] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draws attention weights as a matrix, source across, target down.

    Args:
        source_tokens: source words, S of them.
        target_tokens: target words, T of them.
        weights: attention weights (T, S); a matrix padded on the right is
            cut.
        path: file to write; its suffix chooses the format. Without a file and
            without `ax`, a notebook shows the drawing.
        title: title of the plot; one that says what it is when None.
        links: gold links `(source, target)`, drawn as frames.
        ax: matplotlib axes to draw into; those of a new figure when None.

    Returns:
        The axes.

    Raises:
        ValueError: if there are no words, or `weights` is too small.
        ImportError: if matplotlib is not installed.

    Example:
        >>> weights = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> axes = plot_alignment(["red", "door"], ["rote", "Tür"], weights)
        >>> axes.get_xlabel(), axes.images[0].get_array().shape
        ('source words', (2, 2))
    """
    shape = (len(target_tokens), len(source_tokens))
    weights = _cut(np.asarray(weights), shape)
    ax = ax or _new_axes(*_size(*shape), shown=path is None)
    image = ax.imshow(weights, cmap="Greys", vmin=0.0, vmax=1.0)
    _label_words(ax, source_tokens, target_tokens)
    for i, j in links:
        ax.add_patch(_frame(i, j))
    ax.set_xlabel("source words")
    ax.set_ylabel("target words")
    ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.8)
    ax.set_title(title or "Attention weights")
    texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.title]
    families, missing = fonts_for("".join(text.get_text() for text in texts))
    for text in texts:
        text.set_fontfamily(families)
    warn_of_boxes(missing, "the drawing" if path is None else str(path))
    return _saved(ax, path)


def alignment_image(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: np.ndarray,
    title: str | None = None,
) -> np.ndarray:
    """Draws attention weights as `plot_alignment`, as an image.

    Args:
        source_tokens: as in `plot_alignment`.
        target_tokens: likewise.
        weights: likewise.
        title: likewise.

    Returns:
        (height, width, 4) red, green, blue and opacity, 0 to 255.

    Example:
        >>> alignment_image(["door"], ["Tür"], [[1.0]]).shape
        (240, 300, 4)
    """
    ax = _new_axes(*_size(len(target_tokens), len(source_tokens)))
    plot_alignment(source_tokens, target_tokens, weights, title=title, ax=ax)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Any = ax.figure
    figure.set_dpi(100)
    canvas = FigureCanvasAgg(figure)
    with without_warnings_of_glyphs():
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def plot_length_analysis(
    systems: Mapping[str, Sequence[LengthGroup]],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws BLEU over source length, a line a system.

    Args:
        systems: groups of `bleu_by_length` under each system's name.
        path: file to write, as in `plot_alignment`.
        title: title of the plot.
        ax: matplotlib axes to draw into; those of a new figure when None.

    Returns:
        The axes.

    Raises:
        ValueError: if there is no system, or one without groups.
        ImportError: if matplotlib is not installed.

    Example:
        >>> groups = [LengthGroup(0, 10, 5, 7.2, 30.1)]
        >>> axes = plot_length_analysis({"local-p": groups})
        >>> len(axes.lines), axes.get_ylabel()
        (1, 'BLEU')
    """
    if not systems or not all(systems.values()):
        raise ValueError(
            "`systems` must have at least one system, each with at least "
            f"one group. Received: {dict(systems)}. Pass what "
            "`bleu_by_length` returns under each system's name."
        )
    ax = ax or _new_axes(6.4, 4.2, shown=path is None)
    for index, groups in enumerate(systems.values()):
        ax.plot(
            [group.mean_length for group in groups],
            [group.bleu for group in groups],
            marker=_MARKERS[index % len(_MARKERS)],
            label=str(index),
        )
    ax.set_xlabel("source length (mean words of each group)")
    ax.set_ylabel("BLEU")
    ax.set_ylim(bottom=0.0)
    ax.grid(alpha=0.3)
    # As a label, a name with a "_" in front would be left out.
    for text, name in zip(ax.legend().get_texts(), systems, strict=True):
        text.set_text(_plain(name))
    ax.set_title(title or "BLEU by source length")
    return _saved(ax, path)


def _new_axes(width: float, height: float, shown: bool = False) -> Axes:
    """The axes of a new figure; a notebook shows it if `shown`."""
    size: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    with needs("matplotlib"):
        if shown:
            from matplotlib import pyplot

            return pyplot.subplots(**size)[1]
        from matplotlib.figure import Figure
    # A Figure made without pyplot draws with the canvas its format needs.
    return Figure(**size).add_subplot()


def _size(rows: int, columns: int) -> tuple[float, float]:
    """Width and height in inches of a matrix with words beside it."""
    return max(1.9 + 0.32 * columns, 3.0), max(1.9 + 0.32 * rows, 2.4)


def _cut(weights: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Drops padding on the right of both axes."""
    fits = weights.ndim == 2 and min(shape) > 0
    if not fits or weights.shape[0] < shape[0] or weights.shape[1] < shape[1]:
        raise ValueError(
            "`weights` must be a matrix of at least (target words, source "
            f"words) = {shape}, both positive. Received: shape "
            f"{weights.shape}. Pass the weights of one sentence, with the "
            "target on the first axis."
        )
    return weights[: shape[0], : shape[1]]


def _label_words(
    axes: Axes, source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> None:
    """Writes the source words above and the target words to the left."""
    source, target = map(_plain, source_tokens), map(_plain, target_tokens)
    axes.set_xticks(range(len(source_tokens)), [*source], rotation=90)
    axes.set_yticks(range(len(target_tokens)), [*target])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)


def _plain(text: str) -> str:
    """Text in which dollar signs do not start a formula."""
    return text.replace("$", r"\$")


def _frame(i: int, j: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    corner = (i - 0.45, j - 0.45)
    return Rectangle(corner, 0.9, 0.9, fill=False, edgecolor="tab:red")


def _saved(ax: Axes, path: str | os.PathLike[str] | None) -> Axes:
    """The same axes, their figure written to a file if there is one."""
    if path is not None:
        figure: Any = ax.figure
        with atomic_path(path) as temporary, without_warnings_of_glyphs():
            figure.savefig(temporary, dpi=150)
    return ax


# The fonts that matplotlib brings and uses by default.
_DEFAULT = "DejaVu Sans"
# It has a box for every character there is.
_NO_FONT = "Last Resort"
_scripts_told: set[str] = set()


def fonts_for(text: str) -> tuple[list[str], str]:
    """The fonts that draw a text, and the characters that none has.

    Matplotlib takes each character from the first font of a list that has it;
    the list is found among the fonts that are installed.

    Args:
        text: what is to be drawn.

    Returns:
        The names of the fonts, that of matplotlib first, and the characters
        that would be drawn as boxes.

    Example:
        >>> fonts_for("Tür, باب")
        (['DejaVu Sans'], '')
    """
    families = [_DEFAULT]
    missing = _drawn(text) - _characters(_path_of(_DEFAULT))
    for name, path in _others():
        if not missing:
            break
        found = missing & _characters(path)
        if found:
            families.append(name)
            missing -= found
    return families, "".join(sorted(missing))


def warn_of_boxes(missing: str, what: str) -> None:
    """Says where characters could not be drawn, once for each script.

    Args:
        missing: those without a font, by `fonts_for`.
        what: the drawing.
    """
    if not missing:
        return
    name = unicodedata.name(missing[0], "unknown").split()[0].lower()
    if name in _scripts_told:
        return
    _scripts_told.add(name)
    warnings.warn(
        f"No font of this machine has {missing[:20]!r} ({name}): boxes stand "
        f"for them in {what}. Install one that has, such as Noto Sans CJK, "
        "and remove matplotlib's list of fonts (fontlist-*.json in "
        "`matplotlib.get_cachedir()`).",
        stacklevel=3,
    )


@contextlib.contextmanager
def without_warnings_of_glyphs() -> Iterator[None]:
    """Keeps matplotlib from naming each box that `warn_of_boxes` tells."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        yield


def _drawn(text: str) -> set[str]:
    """Characters that leave a trace on paper."""
    return {c for c in text if unicodedata.category(c)[0] not in "CZ"}


def _path_of(name: str) -> str:
    from matplotlib import font_manager

    return font_manager.findfont(name)


@functools.cache
def _characters(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # no font after all
        return frozenset()


@functools.cache
def _others() -> list[tuple[str, str]]:
    """Upright fonts of ordinary weight, those made for all scripts first."""
    from matplotlib.font_manager import fontManager

    fonts = {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        and not entry.name.startswith(_NO_FONT)
        and entry.name != _DEFAULT
    }
    return sorted(
        fonts.items(), key=lambda font: ("Noto Sans" not in font[0], font[0])
    )
