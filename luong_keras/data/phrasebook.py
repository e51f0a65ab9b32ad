"""The built-in English-German corpus, with gold word links.

`examples/builtin_corpus` writes the file.
"""

import bz2
import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("phrasebook.json.bz2")
LANGUAGES = ("en", "de")
TRAIN_SIZE = 24_000


class SentencePair(NamedTuple):
    """A sentence, its translation and the links between their words.

    `links` are positions of words, from 0: `0-0` is a sure link, `1p2` a
    possible one. Words are the tokens of sacreBLEU's "13a". Only test pairs
    have links; otherwise `links` is None.
    """

    source: str
    target: str
    links: str | None = None


@functools.cache
def _read_corpus() -> dict[str, Any]:
    return json.loads(bz2.decompress(FILE.read_bytes()))


def split_pairs(
    split: str,
    size: int | None = None,
    languages: tuple[str, str] = LANGUAGES,
) -> list[SentencePair]:
    """Read one split of the corpus.

    No sentence of either language occurs twice, in one split or in two.

    Args:
        split: `"train"`, `"dev"` or `"test"`.
        size: The number of pairs, from the start of the split; all if None.
        languages: Source and target, `("en", "de")` or `("de", "en")`.

    Raises:
        ValueError: If the split does not exist or has fewer pairs.

    Example:
        >>> [len(split_pairs(name)) for name in ("train", "dev", "test")]
        [24000, 300, 1000]
        >>> pair = split_pairs("test", 34)[-1]
        >>> print(pair.source)
        Nuzil called Drebaduk.
        >>> print(pair.target)
        Nuzil rief Drebaduk an.
        >>> print(pair.links)
        0-0 1-1 2-2 1-3 3-4
    """
    corpus = _read_corpus()["splits"]
    if split not in corpus:
        raise ValueError(
            f"`split` must be one of {', '.join(corpus)}. Received: "
            f"{split!r}. Use one of these names."
        )
    columns = corpus[split]
    maximum = len(columns["en"])
    if not 0 <= (maximum if size is None else size) <= maximum:
        raise ValueError(
            f"The {split} split of the built-in corpus has {maximum:,} pairs. "
            f"Expected: a size of 0 to {maximum:,}. Received: {size:,}. Leave "
            "`data.train_size` out to take all."
        )
    links = columns.get("links", [None] * maximum)
    if languages != LANGUAGES and "links" in columns:
        links = [re.sub(r"(\d+)([-p])(\d+)", r"\3\2\1", row) for row in links]
    sides = [columns[language] for language in languages]
    return list(map(SentencePair, *sides, links))[:size]


def word_for_word_bleu(languages: tuple[str, str] = LANGUAGES) -> float:
    """Return the BLEU of the test sentences, translated word by word.

    The dictionary comes from the gold links of the training pairs. A higher
    score shows what a model has learnt about reordering, endings, compounds.
    """
    return _read_corpus()["word_for_word_bleu"]["-".join(languages)]
