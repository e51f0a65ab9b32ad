"""Hyphens that a tokeniser set apart as words of their own."""

HYPHEN = "##AT##-##AT##"


def join_hyphens(text: str) -> str:
    """Joins the words around each `##AT##-##AT##` by a hyphen.

    Such text splits compounds, so that their parts can be in a vocabulary.
    A hyphen without a word on either side stays as it is.

    Args:
        text: words set apart by single spaces.

    Returns:
        The text with whole compounds.

    Example:
        >>> join_hyphens("a re ##AT##-##AT## election")
        'a re-election'
    """
    return text.replace(f" {HYPHEN} ", "-")
