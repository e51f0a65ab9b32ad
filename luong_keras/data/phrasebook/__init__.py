"""An unlimited English-German corpus with gold word alignments."""

from luong_keras.data.phrasebook.pairs import (
    SPLITS,
    SentencePair,
    format_links,
    generate_pairs,
    split_pairs,
    turned,
)

__all__ = [
    "SPLITS",
    "SentencePair",
    "format_links",
    "generate_pairs",
    "split_pairs",
    "turned",
]
