"""Plots of alignments and of BLEU by length, and the fonts for them.

Plots that are written to a file, or drawn into given axes, do not use pyplot:
they change no global state and need no display.
"""

from __future__ import annotations

import functools
import os
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from luong_keras.evaluation.length_analysis import LengthGroup
from luong_keras.files.atomic_file import atomic_path
from luong_keras.missing_package import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Draw attention weights as a matrix, source across, target down.

    Args:
        source_tokens: S source words.
        target_tokens: T target words.
        weights: (T, S) attention weights; padding on the right is cut.
        path: File to write; its suffix selects the format. Without `path` and
            without `ax`, a notebook shows the plot.
        title: Title of the plot; "Attention weights" when None.
        links: Gold links `(source, target)`, drawn as frames.
        ax: Matplotlib axes to draw into; the axes of a new figure when None.

    Returns:
        The axes.

    Raises:
        ValueError: If there are no words, `weights` is too small, or a link is
            outside of it.
        ImportError: If matplotlib is not installed.

    Example:
        >>> weights = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> axes = plot_alignment(["red", "door"], ["rote", "Tür"], weights)
        >>> axes.get_xlabel(), axes.images[0].get_array().shape
        ('source words', (2, 2))
    """
    shape = (len(target_tokens), len(source_tokens))
    weights = np.asarray(weights)
    fits = weights.ndim == 2 and min(shape) > 0
    if not fits or min(np.subtract(weights.shape, shape)) < 0:
        raise ValueError(
            "`weights` must be a matrix of at least (target words, source "
            f"words) = {shape}, both positive. Received: shape "
            f"{weights.shape}. Pass the weights of one sentence, with the "
            "target on the first axis."
        )
    width = max(1.9 + 0.32 * len(source_tokens), 3.0)  # inches
    height = max(1.9 + 0.32 * len(target_tokens), 2.4)
    ax = ax or _new_axes(width, height, with_pyplot=path is None)
    from matplotlib.patches import Rectangle

    weights = weights[: shape[0], : shape[1]]  # without padding
    image = ax.imshow(weights, cmap="Greys", vmin=0.0, vmax=1.0)
    # The source words are above, the target words to the left.
    ax.set_xticks(range(shape[1]), source_tokens, rotation=90)
    ax.set_yticks(range(shape[0]), target_tokens)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    for i, j in links:
        if not (0 <= i < shape[1] and 0 <= j < shape[0]):
            raise ValueError(
                "`links` must be (source, target) positions from 0. Expected: "
                f"below {shape[::-1]}. Received: {(i, j)}."
            )
        corner = (i - 0.45, j - 0.45)
        ax.add_patch(
            Rectangle(corner, 0.9, 0.9, fill=False, edgecolor="tab:red")
        )
    ax.set_xlabel("source words")
    ax.set_ylabel("target words")
    ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.8)
    ax.set_title(title or "Attention weights")
    return _finish_figure(ax, path, [*source_tokens, *target_tokens, title])


def plot_length_analysis(
    systems: Mapping[str, Sequence[LengthGroup]],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw BLEU over source length, one line per system.

    Args:
        systems: System name -> groups of `bleu_by_length`.
        path: File to write, as in `plot_alignment`.
        title: Title of the plot.
        ax: Matplotlib axes to draw into; the axes of a new figure when None.

    Returns:
        The axes.

    Raises:
        ValueError: Without systems, or if a system has no groups.
        ImportError: If matplotlib is not installed.

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
    ax = ax or _new_axes(6.4, 4.2, with_pyplot=path is None)
    lines = [
        ax.plot(
            [group.mean_length for group in groups],
            [group.bleu for group in groups],
            marker=_MARKERS[index % len(_MARKERS)],
            label=name,
        )[0]
        for index, (name, groups) in enumerate(systems.items())
    ]
    ax.set_xlabel("source length (mean words of each group)")
    ax.set_ylabel("BLEU")
    ax.set_ylim(bottom=0.0)
    ax.grid(alpha=0.3)
    # Beside the names of lines that the axes had.
    others = [h for h in ax.get_legend_handles_labels()[0] if h not in lines]
    handles = [*others, *lines]
    # The legend leaves out a label that begins with "_", unless it is given.
    ax.legend(handles, [str(handle.get_label()) for handle in handles])
    ax.set_title(title or "BLEU by source length")
    return _finish_figure(ax, path, [*systems, title])


def _new_axes(width: float, height: float, with_pyplot: bool = False) -> Axes:
    """Create axes in a new figure, which a notebook shows if `with_pyplot`."""
    size: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    with needs("matplotlib"):
        if with_pyplot:
            from matplotlib import pyplot

            return pyplot.subplots(**size)[1]
        from matplotlib.figure import Figure
    # A Figure made without pyplot draws with the canvas its format needs.
    return Figure(**size).add_subplot()


def _finish_figure(
    ax: Axes, path: str | os.PathLike[str] | None, plain: Sequence[str | None]
) -> Axes:
    """Select fonts, write the figure to `path`, if given; return the axes.

    Dollar signs in `plain` texts start no formula.
    """
    from matplotlib.text import Text

    texts = cast("list[Text]", ax.findobj(Text))
    families, missing = fonts_for("".join(text.get_text() for text in texts))
    for text in texts:
        text.set_fontfamily(families)
        if text.get_text() in plain:
            text.set_parse_math(False)
    _warn_missing_glyphs(missing, "the drawing" if path is None else str(path))
    if path is not None:
        figure: Any = ax.figure
        with atomic_path(path) as temporary, warnings.catch_warnings():
            # These characters have been reported.
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
            figure.savefig(temporary, dpi=150)
    return ax


# The font that matplotlib contains and uses by default.
_DEFAULT = "DejaVu Sans"
# This font has a box for every character.
_NO_FONT = "Last Resort"
_reported_scripts: set[str] = set()


def fonts_for(text: str) -> tuple[list[str], str]:
    """Return the fonts that draw a text, and the characters without a font.

    Matplotlib takes each character from the first font of a list that has it.
    This function selects the list from the installed fonts.

    Args:
        text: The text to draw.

    Returns:
        The names of the fonts, the default font of matplotlib first, and the
        characters that would be drawn as boxes.

    Example:
        >>> fonts_for("Tür, باب")
        (['DejaVu Sans'], '')
    """
    from matplotlib.font_manager import findfont

    families = [_DEFAULT]
    visible = {c for c in text if unicodedata.category(c)[0] not in "CZ"}
    missing = visible - _font_characters(findfont(_DEFAULT))
    for name, path in _fallback_fonts():
        if not missing:
            break
        covered = missing & _font_characters(path)
        if covered:
            families.append(name)
            missing -= covered
    return families, "".join(sorted(missing))


def _warn_missing_glyphs(missing: str, drawing: str) -> None:
    """Warn of characters that could not be drawn, once per script.

    Args:
        missing: The characters without a font, from `fonts_for`.
        drawing: The name of the plot.
    """
    if not missing:
        return
    name = unicodedata.name(missing[0], "unknown").split()[0].lower()
    if name in _reported_scripts:
        return
    _reported_scripts.add(name)
    warnings.warn(
        f"No font on this machine has {missing[:20]!r} ({name}): boxes "
        f"replace them in {drawing}. Install a font that has these characters, "
        "such as Noto Sans CJK, and remove matplotlib's list of fonts "
        "(fontlist-*.json in `matplotlib.get_cachedir()`).",
        stacklevel=4,
    )


@functools.cache
def _font_characters(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # The file is not a readable font.
        return frozenset()


@functools.cache
def _fallback_fonts() -> list[tuple[str, str]]:
    """Return the upright fonts of normal weight, Noto Sans fonts first."""
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
