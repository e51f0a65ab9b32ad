"""Numbers of pairs of sentences, and which of them came before."""

from __future__ import annotations

import hashlib

import numpy as np


def pair_hash(source: str, target: str) -> int:
    """A number that depends on nothing but the pair."""
    text = f"{source}\t{target}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


class SeenHashes:
    """Which numbers came before, in eight bytes each.

    Sorted arrays, each at least twice as long as the one after it: a new one
    is merged with those that are not, so that there are few to look in.

    Example:
        >>> seen = SeenHashes()
        >>> seen.add(np.array([5, 7, 5], np.uint64)).tolist()
        [False, False, True]
        >>> seen.add(np.array([7, 8], np.uint64)).tolist()
        [True, False]
    """

    def __init__(self) -> None:
        self._sorted: list[np.ndarray] = []

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Notes numbers.

        Args:
            hashes: The numbers, (n,), uint64.

        Returns:
            Whether each came before, here or in an earlier call, (n,).
        """
        new, first = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), bool)
        repeated[first] = False
        for known in self._sorted:
            places = np.searchsorted(known, hashes)
            places[places == len(known)] = 0
            repeated |= known[places] == hashes
        if new.size:
            self._sorted.append(new)
        while len(self._sorted) > 1 and (
            2 * len(self._sorted[-1]) > len(self._sorted[-2])
        ):
            last = self._sorted.pop()
            self._sorted[-1] = np.union1d(self._sorted[-1], last)
        return repeated
