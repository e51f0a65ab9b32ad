"""Symmetrisation of the links of both translation directions.

A model links each word that it produces to one word that it reads. Therefore
forward links have one link per target word, and backward links one per source
word. Symmetrised links can be many to many.
"""

from collections.abc import Iterable
from typing import Literal, get_args

from luong_keras.alignment.links import Link
from luong_keras.config.checks import check_choice

Method = Literal[
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
]
METHODS: tuple[Method, ...] = get_args(Method)
# Offsets (source, target) from a link to its neighbours: above, left, below
# and right, then the corners, in the order of the Moses manual.
_NEIGHBOURS = (
    *((0, -1), (-1, 0), (0, 1), (1, 0)),
    *((-1, -1), (1, -1), (-1, 1), (1, 1)),
)


def symmetrize(
    forward: Iterable[Link],
    backward: Iterable[Link],
    method: Method = "grow-diag-final",
) -> frozenset[Link]:
    """Combine the links of both directions of a sentence pair.

    `"intersection"` has the links that both directions found, the most precise
    result; `"union"` has the links that either found. The other methods lie
    between them (Koehn, Och and Marcu 2003, after Och and Ney 2003).
    `"grow-diag"` begins with the intersection and adds links of the union that
    touch a present link, also at a corner, and cover a word without a link.
    `"grow-diag-final"` then adds links, first of `forward` and then of
    `backward`, that cover a word without a link, wherever they are;
    `"grow-diag-final-and"` adds only those that cover two such words.

    The result depends on the order in which links are added. The papers leave
    it open; the manual of Moses visits pairs target word by target word and
    also grows from links that the same pass added. This function does the
    same. In the final step `forward`, with one link per target word, comes
    first, as in the program of Moses.

    Args:
        forward: Links `(source, target)` of the model that translates the
            source.
        backward: Links of the model that translates the target, reversed
            to `(source, target)`.
        method: One of `METHODS`.

    Returns:
        The links, `(source, target)`.

    Raises:
        ValueError: For an unknown method.

    Example:
        >>> forward, backward = [(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 2)]
        >>> sorted(symmetrize(forward, backward, "intersection"))
        [(0, 0), (1, 2)]
        >>> sorted(symmetrize(forward, backward))
        [(0, 0), (1, 1), (1, 2)]
    """
    check_choice(METHODS, method=method)
    forward, backward = frozenset(forward), frozenset(backward)
    if method == "intersection":
        return forward & backward
    if method == "union":
        return forward | backward
    union = forward | backward
    links = set(forward & backward)
    sources = {i for i, _ in links}
    targets = {j for _, j in links}

    def add(i: int, j: int, min_uncovered: int = 1) -> bool:
        """Add a link if it covers enough words without a link."""
        uncovered = (i not in sources) + (j not in targets)
        if uncovered >= min_uncovered:
            links.add((i, j))
            sources.add(i)
            targets.add(j)
        return uncovered >= min_uncovered

    # Only links of the union are added, so a pass over the union visits all
    # links, including those that it has added.
    order = sorted(union, key=_by_target)
    has_grown = True
    while has_grown:
        has_grown = False
        for i, j in filter(links.__contains__, order):
            for right, down in _NEIGHBOURS:
                neighbour = i + right, j + down
                has_grown |= neighbour in union and add(*neighbour)
    if method != "grow-diag":
        min_uncovered = 2 if method == "grow-diag-final-and" else 1
        for direction in (forward, backward):
            for link in sorted(direction, key=_by_target):
                add(*link, min_uncovered)
    return frozenset(links)


def _by_target(link: Link) -> Link:
    return link[1], link[0]
