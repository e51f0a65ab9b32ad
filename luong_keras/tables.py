"""Small tables, as text and as HTML, and numbers in them and in sentences."""

import html
from collections.abc import Sequence


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    Args:
        number: The number of things.
        singular: The noun for one thing.
        plural: The noun for several; the singular with an s by default.

    Example:
        >>> pluralize(1, "batch", "batches"), pluralize(2000, "pair")
        ('1 batch', '2,000 pairs')
    """
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {noun}"


def format_score(score: float) -> str:
    """Return a score in two decimals, or below 1 in four significant digits.

    Example:
        >>> [format_score(score) for score in (41.037, 1, 0, 0.35, 0.0123456)]
        ['41.04', '1.00', '0.00', '0.35', '0.01235']
    """
    return f"{score:.4g}" if 0 < abs(score) < 1 else f"{score:.2f}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns.

    Args:
        rows: Lists of cells, equally many in each row.

    Example:
        >>> print(text_table([("weights", "BLEU"), ("best", "41.0")]))
        weights  BLEU
        best     41.0
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows
    )


def sample_table(source: str, reference: str, translation: str) -> str:
    """Return a sentence, its reference and its translation in three lines.

    A text of more than 300 characters is shortened and ends with `…`.

    Example:
        >>> print(sample_table("ein Haus", "a house", "a home"))
        source       ein Haus
        reference    a house
        translation  a home
    """
    texts = {
        "source": source,
        "reference": reference,
        "translation": translation,
    }
    return text_table(
        [
            (name, text if len(text) <= 300 else f"{text[:299]}…")
            for name, text in texts.items()
        ]
    )


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table, for a notebook.

    Args:
        rows: Lists of cells, equally many in each row.

    Example:
        >>> html_table([("a < b", "1")])
        '<table><tr><td>a &lt; b</td><td>1</td></tr></table>'
    """
    lines = (
        "".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
