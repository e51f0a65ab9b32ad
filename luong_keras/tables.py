"""Small tables, as text and as HTML, and numbers with their nouns."""

from __future__ import annotations

import html
from collections.abc import Sequence


def counted(number: int, singular: str, plural: str = "") -> str:
    """Returns a number with its noun.

    Args:
        number: how many there are.
        singular: the noun of one.
        plural: that of several; the singular with an s by default.

    Example:
        >>> counted(1, "batch", "batches"), counted(2000, "pair")
        ('1 batch', '2,000 pairs')
    """
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {noun}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as lines, the columns under each other.

    Args:
        rows: cells, as many in each row.

    Example:
        >>> print(text_table([("weights", "BLEU"), ("best", "41.0")]))
        weights  BLEU
        best     41.0
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows
    )


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as a table of HTML, for a notebook.

    Args:
        rows: cells, as many in each row.

    Example:
        >>> html_table([("a < b", "1")])
        '<table><tr><td>a &lt; b</td><td>1</td></tr></table>'
    """
    lines = (
        "".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
