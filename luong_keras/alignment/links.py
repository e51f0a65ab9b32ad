"""Word alignments as text: `0-0 1-2`, one sentence pair per line."""

import re
from collections.abc import Iterable, Iterator

Link = tuple[int, int]
_LINK = re.compile(r"([0-9]+)([-p?])([0-9]+)")


def parse_links(
    lines: Iterable[str], one_based: bool = False
) -> list[tuple[Link, ...]]:
    """Parse the links of word alignments, in the order of the text.

    A link is `i-j`, or `ipj` or `i?j` if it is only possible; i is the
    source position and j the target position. A line may be empty.

    Args:
        lines: Lines of text, such as an open file.
        one_based: Whether the positions count from 1.

    Returns:
        The links `(source, target)` of each line, 0-based, both sure and
        possible.

    Raises:
        ValueError: If a link is malformed; the message has the line number.

    Example:
        >>> parse_links(["2-1 0-0", ""])
        [((2, 1), (0, 0)), ()]
    """
    return [
        tuple(link for link, _ in links)
        for links in marked_links(lines, one_based)
    ]


def format_links(links: Iterable[Link]) -> str:
    """Format links as text for `parse_links`, sorted by position.

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


def marked_links(
    lines: Iterable[str], one_based: bool
) -> Iterator[list[tuple[Link, bool]]]:
    """Parse links together with whether they are sure.

    Args:
        lines: As in `parse_links`.
        one_based: As in `parse_links`.

    Yields:
        The links of each line in their order, each with True if it is sure
        and False if it is only possible.

    Raises:
        ValueError: As in `parse_links`.

    Example:
        >>> list(marked_links(["1-1 2p1"], one_based=True))
        [[((0, 0), True), ((1, 0), False)]]
    """
    for number, line in enumerate(lines, start=1):
        yield [
            _parse_link(text, number, int(one_based)) for text in line.split()
        ]


def _parse_link(text: str, number: int, base: int) -> tuple[Link, bool]:
    match = _LINK.fullmatch(text)
    if match is None:
        raise ValueError(
            "A link must be written `i-j` (sure), `ipj` or `i?j` "
            f"(possible). Received: {text!r} in line {number}. Correct "
            "the line, or convert the file to this format."
        )
    link = int(match[1]) - base, int(match[3]) - base
    if min(link) < 0:
        raise ValueError(
            "Positions that count from 1 cannot be 0. Received: "
            f"{text!r} in line {number}. Leave out `one_based=True`, or "
            "--gold-one-based, if the file counts from 0."
        )
    return link, match[2] == "-"
