"""One set of links from those of both directions.

A model links each word that it produces to one it reads, so that links of one
direction are never one to many, and those of the other never many to one.
Both together, symmetrised, can be any.
"""

from collections.abc import Iterable, Set
from typing import Literal

from luong_keras.alignment.links import Link

Method = Literal[
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
]
METHODS: tuple[Method, ...] = (
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
)
# From one link to those beside it, (source, target): above, left, below and
# right of it, then its corners, in the order of the Moses manual.
_NEIGHBOURS = (
    *((0, -1), (-1, 0), (0, 1), (1, 0)),
    *((-1, -1), (1, -1), (-1, 1), (1, 1)),
)


def symmetrize(
    forward: Iterable[Link],
    backward: Iterable[Link],
    method: Method = "grow-diag-final",
) -> frozenset[Link]:
    """Combines the links of both directions of a sentence pair.

    `"intersection"` has those that both directions found, the most precise;
    `"union"` those that either found. The others lie between (Koehn, Och and
    Marcu 2003, after Och and Ney 2003): `"grow-diag"` begins with the
    intersection and adds links of the union that touch one that is there, also
    at a corner, and cover a word that has no link yet; `"grow-diag-final"`
    then adds, first of `forward` and then of `backward`, what covers such a
    word wherever it stands, and `"grow-diag-final-and"` only what covers two
    of them.

    Which links a growing set ends with depends on the order in which it
    grows, and the texts differ: the papers leave it open; the manual of Moses
    visits pairs target word by target word and grows from new links in the
    same pass. So does this function, and `forward`, whose targets have one
    link each, comes first in the end, as in the program of Moses.

    Args:
        forward: links `(source, target)` of the model that translates the
            source.
        backward: those of the model that translates the target, reversed
            to `(source, target)`.
        method: one of `METHODS`.

    Returns:
        The links, `(source, target)`.

    Raises:
        ValueError: for another method.

    Example:
        >>> forward, backward = [(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 2)]
        >>> sorted(symmetrize(forward, backward, "intersection"))
        [(0, 0), (1, 2)]
        >>> sorted(symmetrize(forward, backward))
        [(0, 0), (1, 1), (1, 2)]
    """
    if method not in METHODS:
        raise ValueError(
            f"`method` must be one of {', '.join(METHODS)}. Received: "
            f"method={method!r}."
        )
    one, other = frozenset(forward), frozenset(backward)
    if method == "intersection":
        return one & other
    if method == "union":
        return one | other
    found = _Growing(one & other)
    found.grow(one | other)
    if method != "grow-diag":
        both = method == "grow-diag-final-and"
        found.complete(one, both)
        found.complete(other, both)
    return frozenset(found.links)


class _Growing:
    """Links that become more, and the words that have one."""

    def __init__(self, links: Set[Link]) -> None:
        self.links = set(links)
        self.sources = {i for i, _ in links}
        self.targets = {j for _, j in links}

    def grow(self, union: Set[Link]) -> None:
        """Adds what touches a link and covers a word that has none."""
        # Nothing outside of the union is ever added, so that a pass over it
        # meets all links, those of the same pass too.
        order = sorted(union, key=_by_target)
        grown = True
        while grown:
            grown = False
            for i, j in order:
                if (i, j) not in self.links:
                    continue
                for right, down in _NEIGHBOURS:
                    near = i + right, j + down
                    if near in union and self._uncovered(near):
                        self._add(near)
                        grown = True

    def complete(self, links: Set[Link], both: bool) -> None:
        """Adds what covers a word that has none, or two such words."""
        wanted = 2 if both else 1
        for link in sorted(links, key=_by_target):
            if self._uncovered(link) >= wanted:
                self._add(link)

    def _uncovered(self, link: Link) -> int:
        i, j = link
        return (i not in self.sources) + (j not in self.targets)

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])


def _by_target(link: Link) -> Link:
    return link[1], link[0]
