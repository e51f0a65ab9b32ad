"""Headlines for reports with names and numbers unseen in training.

    python copying_summariser.py

The model reads and writes rare words as `<unk>`. Each `<unk>` in a headline is
replaced by the source word with the most attention (section 4.2 of the paper).
Attention learns to find these words from frequent names and numbers.
"""

import argparse
import itertools
import random

import sacrebleu

from luong_keras import Translator

REPORTS, TEST_REPORTS, REPORTS_READ = 1_500, 300, 18_000  # in all epochs
VERBS = {"bought": "buys", "sold": "sells", "lost": "loses", "won": "wins"}
THINGS = ["farm", "boat", "mill", "horse", "violin", "clock", "castle"]
NEWS = (
    "Anna {name}, aged {age}, of {town} {past} a {thing} for {price} euros.",
    "For {price} euros, Paul {name} of {town} ({age}) {past} a {thing}.",
    "In {town}, Maria {name} {past} a {thing} and spoke of {price} euros.",
)
OTHERS = (
    "Peter {name}, a lawyer of {town}, was the witness.",
    "Rosa {name} came from {town} and paid {price} euros of taxes.",
    "The fair in {town} was opened by Hugo {name}, aged {age}.",
)
HEADLINE = "{name} of {town} {present} {thing} for {price} euros"


def made_up(draw: random.Random):
    """Yield reports and headlines, first the test pairs with new names."""
    letters = ("BDFGKLMNPRST", "aeiou", "bdfglmnprstvz", "aeiou", "lmnrst")
    names = ["".join(parts) for parts in itertools.product(*letters)]
    draw.shuffle(names)
    prices = draw.sample(range(1_000, 100_000), len(names))
    for share in [0.0] * TEST_REPORTS + [0.7] * REPORTS:
        sentences = []
        for forms in (OTHERS, NEWS):
            words = {"thing": draw.choice(THINGS), "age": draw.randint(18, 99)}
            words["past"], words["present"] = draw.choice([*VERBS.items()])
            for key in ("name", "town", "price"):
                new = prices if key == "price" else names
                frequent = draw.random() < share
                words[key] = draw.choice(new[:30]) if frequent else new.pop()
            sentences.append(draw.choice(forms).format(**words))
        yield " ".join(draw.sample(sentences, 2)), HEADLINE.format(**words)


def main() -> None:
    """Train with and without attention and print a row per search."""
    pairs = [*made_up(random.Random(1))]
    sources, headlines = map(list, zip(*pairs[:TEST_REPORTS], strict=True))
    table = "| attention | replaced | right | chrF |\n|---|---|---|---|"
    for kind, *choices in (("global", True, False), ("none", False)):
        translator = Translator.fit(
            pairs[TEST_REPORTS:],
            run_dir=f"runs/copying_summariser/{kind}",
            test=pairs[:TEST_REPORTS],
            train_only=True,
            epochs=REPORTS_READ // REPORTS,
            vocabulary_size=200,
            data={"tokenizer": "words"},
            model={"attention": {"kind": kind}},
        )
        for replaced in choices:
            found = translator.translate(sources, replace_unknown=replaced)
            right = sum(map(str.__eq__, found, headlines)) / TEST_REPORTS
            chrf = sacrebleu.corpus_chrf(found, [headlines]).score
            table += f"\n| {kind} | {replaced} | {right:.1%} | {chrf:.1f} |"
    print(table)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
