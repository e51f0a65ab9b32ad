"""Symmetrisation of the links of both translation directions.

A model links each word that it produces to one word that it reads. Therefore
forward links have one link per target word, and backward links one per source
word. Symmetrised links can be many to many.
"""

from collections.abc import Iterable, Set
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
    alignment = _GrowingAlignment(forward & backward)
    alignment.grow(forward | backward)
    if method != "grow-diag":
        both = method == "grow-diag-final-and"
        alignment.complete(forward, both)
        alignment.complete(backward, both)
    return frozenset(alignment.links)


class _GrowingAlignment:
    """A growing set of links, and the words that have a link."""

    def __init__(self, links: Set[Link]) -> None:
        self.links = set(links)
        self.sources = {i for i, _ in links}
        self.targets = {j for _, j in links}

    def grow(self, union: Set[Link]) -> None:
        """Add links that touch a link and cover a word without a link."""
        # Only links of the union are added, so a pass over the union visits
        # all links, including those that it has added.
        order = sorted(union, key=_by_target)
        has_grown = True
        while has_grown:
            has_grown = False
            for i, j in order:
                if (i, j) not in self.links:
                    continue
                for right, down in _NEIGHBOURS:
                    neighbour = i + right, j + down
                    if neighbour in union and self._uncovered_words(neighbour):
                        self._add(neighbour)
                        has_grown = True

    def complete(self, links: Set[Link], both: bool) -> None:
        """Add links that cover a word without a link, or two if `both`."""
        min_uncovered = 2 if both else 1
        for link in sorted(links, key=_by_target):
            if self._uncovered_words(link) >= min_uncovered:
                self._add(link)

    def _uncovered_words(self, link: Link) -> int:
        i, j = link
        return (i not in self.sources) + (j not in self.targets)

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])


def _by_target(link: Link) -> Link:
    return link[1], link[0]
