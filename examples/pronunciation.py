"""Pronunciation of unseen words, with and without attention.

    python pronunciation.py
    python pronunciation.py cmudict.tsv

Without a file, the program makes up words and pronounces them by the rules of
Italian. Each line of a file is `word<tab>phonemes`: `HELLO<tab>HH AH0 L OW1`.
CMUdict is read as it is, without the further pronunciations of a word.
Letters and phonemes are the "words" of the model.
"""

import argparse
import functools
import random
import re
from pathlib import Path

from luong_keras import Translator

UTF_8 = {"encoding": "utf-8", "errors": "replace"}
WORDS = 1_800  # a sixth is the test set
WORDS_READ = 24_000  # in all epochs
RULES = {  # applied in this order
    **{"c(?=c[ei])": "ʧ", "g(?=g[ei])": "ʤ", "sci(?=[aou])|sc(?=[ei])": "ʃ"},
    **{"gli(?=[aou])|gl(?=i)": "ʎ", "gn": "ɲ", "ci(?=[aou])|c(?=[ei])": "ʧ"},
    **{"gi(?=[aou])|g(?=[ei])": "ʤ", "ch?": "k", "gh?": "ɡ", "qu": "kw"},
    **{"z": "ʦ", "(?<=[aeiou])s(?=[aeiou])": "z", r"(.)\1": r"\1ː"},
}
ONSETS = "b c cc cch ch ci d f g ggi gh gi gl gn l ll m n p qu r s sc ss t v zz"


def made_up(draw: random.Random):
    """Yield words of two to five syllables, as lines of a file."""
    for _ in range(WORDS):
        onsets = draw.choices(ONSETS.split(), k=draw.randint(2, 5))
        word = sounds = "".join(o + draw.choice("aeiou") for o in onsets)
        for spelling, sound in RULES.items():
            sounds = re.sub(spelling, sound, sounds)
        yield f"{word}\t{' '.join(sounds)}"


@functools.cache
def distance(one: tuple, other: tuple) -> int:
    """Return the edit distance of two sequences."""
    if not one or not other:
        return len(one) + len(other)
    first, second = one[1:], other[1:]
    gaps = min(distance(first, other), distance(one, second)) + 1
    return min(gaps, distance(first, second) + (one[0] != other[0]))


def main(path: str = "") -> None:
    """Train with and without attention and print a row for each."""
    draw = random.Random(1)
    text = Path(path).read_text(**UTF_8).split("\n") if path else made_up(draw)
    # Without comments, duplicates, and further pronunciations: `HELLO(1)`.
    lines = (line.split(" #")[0].strip() for line in text)
    lines = (x for x in lines if x and not re.match(r";;;|\S+\(\d\)\s", x))
    words = dict(x.split("\t" if "\t" in x else None, 1) for x in lines)
    pairs = [(" ".join(word), words[word]) for word in words]
    draw.shuffle(pairs)
    test, train = pairs[: len(pairs) // 6], pairs[len(pairs) // 6 :]
    right = [tuple(sounds.split()) for _, sounds in test]
    table = "| attention | phoneme errors | words right |\n|---|---|---|"
    for attention in ({"kind": "local", "half_width": 3}, {"kind": "none"}):
        kind = attention["kind"]
        translator = Translator.fit(
            train,
            run_dir=Path(
                "runs", "pronunciation", Path(path or "made").stem, kind
            ),
            test=test,
            train_only=True,
            epochs=max(1, WORDS_READ // len(train)),
            data={"tokenizer": "words", "pretokenized": True},
            model={"attention": attention},
        )
        found = translator.translate([letters for letters, _ in test])
        found = [tuple(sounds.split()) for sounds in found]
        errors = sum(map(distance, found, right)) / sum(map(len, right))
        exact = sum(map(tuple.__eq__, found, right)) / len(right)
        table += f"\n| {kind} | {errors:.1%} | {exact:.1%} |"
    print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="")
    main(parser.parse_args().file)
