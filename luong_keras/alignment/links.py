"""Links between the words of two sentences."""

from collections.abc import Iterable

Link = tuple[int, int]


def format_links(links: Iterable[Link]) -> str:
    """Format links as text for `parse_alignments`, sorted by position.

    Example:
        >>> format_links({(1, 2), (0, 0), (1, 0)})
        '0-0 1-0 1-2'
    """
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def check_links(
    links: Iterable[Link],
    lengths: tuple[int, int],
    where: str,
    one_based: bool = False,
) -> None:
    """Check that links lie inside their sentences.

    Args:
        links: Links `(source, target)`, 0-based.
        lengths: The numbers of words of the source and of the target.
        where: The origin of the links, such as `line 3 of links.txt`.
        one_based: Whether the positions count from 1 there.

    Raises:
        ValueError: If a link leads outside; the message has the first one.

    Example:
        >>> check_links([(0, 2)], (1, 2), "pair 1")
        Traceback (most recent call last):
        ...
        ValueError: A link in pair 1 leads outside its sentences. Expected: \
positions up to 0 and 1. Received: 0-2. Check that text and links have the \
same lines, words and direction, and whether the links count from 1.
    """
    for i, j in sorted(map(tuple, links)):
        if 0 <= i < lengths[0] and 0 <= j < lengths[1]:
            continue
        base = int(one_based)
        hint = "" if one_based else ", and whether the links count from 1"
        expected = "none, since a sentence is empty"
        if all(lengths):
            last = [length - 1 + base for length in lengths]
            expected = f"positions up to {last[0]} and {last[1]}"
        raise ValueError(
            f"A link in {where} leads outside its sentences. Expected: "
            f"{expected}. Received: {i + base}-{j + base}. Check "
            "that text and links have the same lines, words and "
            f"direction{hint}."
        )
