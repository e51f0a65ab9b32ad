"""Numbers of pairs of sentences."""

from __future__ import annotations

import hashlib


def pair_hash(source: str, target: str) -> int:
    """A number that depends on nothing but the pair."""
    text = f"{source}\t{target}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
