"""Inflection of unseen nouns, with and without attention.

    python inflection.py
    python inflection.py tur.tsv

Without a file, the program makes up nouns with the vowel harmony of Turkish. A
file has the columns of UniMorph, such as `ev<tab>evlerde<tab>N;LOC;PL`.
"""

import argparse
import random
import re
from pathlib import Path

from luong_keras import Translator

LEMMAS, FORMS, FORMS_READ = 700, 3, 30_000
# I and A follow vowel harmony, D is d or t, ( precedes a linking sound.
SUFFIXES = (
    {"SG": "", "PL": "lAr"},
    {"PSS0": "", "PSS1S": "(Im", "PSS2S": "(In", "PSS1P": "(ImIz"},
    {"NOM": "", "ACC": "(yI", "DAT": "(yA", "LOC": "DA", "GEN": "(nIn"},
)
VOWELS, HIGH, LOW = "aıeiouöü", "ııiiuuüü", "aaeeaaee"


def inflected(word: str, suffixes: str) -> str:
    """Return a Turkish noun with its suffixes."""
    for bracket, letter in re.findall(r"(\(?)(\w)", suffixes):
        if bracket and (letter == "I") == (word[-1] in VOWELS):
            continue
        last = VOWELS.index(re.findall(f"[{VOWELS}]", word)[-1])
        end = "t" if word[-1] in "çfhkpsşt" else "d"
        word += {"I": HIGH[last], "A": LOW[last], "D": end}.get(letter, letter)
    return word


def made_up(draw: random.Random):
    """Yield nouns and some forms of each noun, as lines of a file."""
    for _ in range(LEMMAS):
        consonants = draw.choices("bcçdfghklmnprsştvyz", k=draw.randint(1, 3))
        lemma = "".join(c + draw.choice(VOWELS) for c in consonants)
        lemma += draw.choice("çklmnprst")
        for _ in range(FORMS):
            names = [draw.choice([*some]) for some in SUFFIXES]
            form = inflected(lemma, "".join(map(dict.get, SUFFIXES, names)))
            yield f"{lemma}\t{form}\t{';'.join(names)}"


def main(path: str = "") -> None:
    """Train with and without attention and print a row for each."""
    draw = random.Random(1)
    text = Path(path).read_text("utf-8").splitlines() if path else made_up(draw)
    # In forms of several words, the space is a letter, too.
    rows = [line.replace(" ", "_").split("\t") for line in text if line]
    lemmas = sorted({row[0] for row in rows})
    new = {*draw.sample(lemmas, len(lemmas) // 7)}
    train, test = parts = [], []
    for lemma, form, features in rows:
        source = " ".join([*lemma, *features.split(";")])
        parts[lemma in new].append((source, " ".join(form)))
    table = "| attention | forms right |\n|---|---|"
    for kind in ("global", "none"):
        translator = Translator.fit(
            train,
            run_dir=Path("runs", "inflection", Path(path or "made").stem, kind),
            test=test,
            train_only=True,
            epochs=max(1, FORMS_READ // len(train)),
            data={"tokenizer": "words", "pretokenized": True},
            model={"attention": {"kind": kind}},
        )
        found = translator.translate([source for source, _ in test])
        exact = sum(f == form for f, (_, form) in zip(found, test, strict=True))
        table += f"\n| {kind} | {exact / len(test):.1%} |"
    print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="")
    main(parser.parse_args().file)
