"""Write the built-in corpus: `python -m examples.builtin_corpus [FILE]`.

A bilingual grammar builds both sides of a sentence at once, so every pair is
correct and its words are aligned. `luong_keras` reads the file. The program
writes the same bytes at each call and needs sacreBLEU.
"""

import bz2
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import sacrebleu

from .pairs import SentencePair, format_links, reversed_pair, split_pairs

SIZES = {"train": 24_000, "dev": 300, "test": 1000}
FILE = Path("luong_keras", "data", "phrasebook.json.bz2")


def dictionary(pairs: Iterable[SentencePair]) -> dict[str, str]:
    """Map each source word to the target word that it is linked to most.

    Ties go to the first target word in sorted order.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        for i, j in pair.sure:
            counts[pair.source_tokens[i]][pair.target_tokens[j]] += 1
    return {
        source: min(targets, key=lambda word: (-targets[word], word))
        for source, targets in counts.items()
    }


def word_for_word_bleu(
    train: list[SentencePair], test: list[SentencePair]
) -> float:
    """Return BLEU of a word-by-word translation in the source's order.

    Words that are not in the dictionary are copied.
    """
    known = dictionary(train)
    translations = [
        " ".join(known.get(word, word) for word in pair.source_tokens)
        for pair in test
    ]
    references = [" ".join(pair.target_tokens) for pair in test]
    bleu = sacrebleu.corpus_bleu(translations, [references], force=True)
    return round(bleu.score, 6)


def corpus() -> bytes:
    """Return the compressed file: a JSON object of splits and baselines."""
    pairs = {name: split_pairs(name, size) for name, size in SIZES.items()}
    splits = {
        name: {
            "en": [pair.source for pair in split],
            "de": [pair.target for pair in split],
        }
        for name, split in pairs.items()
    }
    splits["test"]["links"] = [format_links(pair) for pair in pairs["test"]]
    parts = pairs["train"], pairs["test"]
    back = [[reversed_pair(pair) for pair in part] for part in parts]
    scores = {
        "en-de": word_for_word_bleu(*parts),
        "de-en": word_for_word_bleu(*back),
    }
    found = {"word_for_word_bleu": scores, "splits": splits}
    text = json.dumps(found, ensure_ascii=False, indent=0) + "\n"
    return bz2.compress(text.encode())


if __name__ == "__main__":
    Path(*sys.argv[1:] or [FILE]).write_bytes(corpus())
