"""A share of the training pairs, kept apart to choose and to test a model."""

from __future__ import annotations

from collections.abc import Iterable

from luong_keras.config_data import FilterConfig
from luong_keras.data.pair_filters import filtered
from luong_keras.data.pair_hashes import pair_hash

SHARE = 0.02
MOST = 1000  # pairs a part
# Scores of a dozen pairs are noise: of a small text 10 % make a part, until
# they are 100 pairs.
SMALL_SHARE, FEW = 0.1, 100


def held_out_pairs(
    pairs: Iterable[tuple[str, str]],
    parts: int,
    filters: FilterConfig | None = None,
) -> list[dict[int, tuple[str, str]]]:
    """Chooses the pairs of some parts by their hashes, in one pass.

    The pairs with the smallest hashes: whatever the order of the text, the
    same ones, and with a pair all that are equal to it.

    Args:
        pairs: The training pairs; none with an empty side is chosen.
        parts: How many parts to make.
        filters: What is left out of the training text, and so not chosen.

    Returns:
        By its hash each pair of each part, in the order of the text: 2 % of
        the different pairs, at most 1,000; 100 where 2 % are fewer, but no
        more than 10 %.

    Raises:
        ValueError: There are too few pairs.

    Example:
        >>> pairs = [(str(i), str(i)) for i in range(200)]
        >>> dev, test = held_out_pairs(pairs, 2)
        >>> len(dev), len(test), len(dev.keys() & test.keys())
        (20, 20, 0)
    """
    most = parts * MOST
    # Of more different pairs than this no more are held out.
    enough = MOST / SHARE
    different: set[int] = set()
    # What may be among the smallest, with the place of its first line.
    candidates: dict[int, tuple[int, tuple[str, str]]] = {}
    limit = 1 << 64
    for place, pair in enumerate(pairs):
        if not _usable(pair, filters):
            continue
        number = pair_hash(*pair)
        if len(different) < enough:
            different.add(number)
        if number >= limit or number in candidates:
            continue
        candidates[number] = place, (pair[0], pair[1])
        if len(candidates) > 2 * most:
            smallest = sorted(candidates)[:most]
            limit = smallest[-1] + 1
            candidates = {kept: candidates[kept] for kept in smallest}
    count = len(different)
    if count <= parts:
        raise ValueError(
            f"Expected: at least {parts + 1} different sentence pairs, to "
            f"hold {parts} out of them. Received: {count}; a pair is "
            "two sentences that are not empty, in one file with a tab between "
            "them. Give more, or give data.dev and data.test."
        )
    few = min(round(SMALL_SHARE * count), FEW)
    size = min(max(round(SHARE * count), few, 1), MOST)
    chosen = sorted(candidates)
    found = []
    for part in range(parts):
        own = chosen[part * size : (part + 1) * size]
        own.sort(key=lambda number: candidates[number][0])
        found.append({number: candidates[number][1] for number in own})
    return found


def _usable(pair, filters: FilterConfig | None) -> bool:
    try:
        whole = all(side and side.strip() and side.encode() for side in pair)
    except UnicodeEncodeError:
        return False
    if filters is None or not whole:
        return whole
    return filtered(pair[0], pair[1], filters) is None
