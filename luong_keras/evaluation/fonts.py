"""Which fonts of this machine draw a text."""

from __future__ import annotations

import contextlib
import functools
import unicodedata
import warnings
from collections.abc import Iterator

# What matplotlib brings and draws with unless told otherwise.
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
        missing: those that `fonts_for` has not found.
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
