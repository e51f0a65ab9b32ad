"""Conversion of written dates to ISO 8601, with and without attention.

    python dates.py

The training text contains no day of the test, in any form. The tokens are
characters. For one date the program prints which source character each output
character attends to most.
"""

import argparse
import datetime
import random

from luong_keras import Translator

DAYS, TEST_DAYS, DATES_READ = 1_500, 300, 30_000  # in all epochs
FIRST = datetime.date(1930, 1, 1).toordinal()
FORMS = (
    "{day}{th} of {month} {year}",
    "{month} {day}{th}, {year}",
    "{date:%m/%d/%y}",
    "{day}.{date.month}.{year}",
    "{date:%d-%b-%Y}",
    "{weekday}, {month} {day}, {year}",
    "{day} {date:%b} '{date:%y}",
    "on {weekday} the {day}{th} of {month}, {year}",
    "{date:%Y%m%d}",
)


def written(date: datetime.date, draw: random.Random) -> str:
    """Write a date in one of the forms."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(date.day % 10, "th")
    return draw.choice(FORMS).format(
        date=date,
        day=date.day,
        th="th" if 11 <= date.day <= 13 else ending,
        month=f"{date:%B}",
        year=date.year,
        weekday=f"{date:%A}",
    )


def main() -> None:
    """Train with and without attention and print a row for each."""
    draw = random.Random(1)
    days = draw.sample(range(FIRST, FIRST + 36_525), DAYS + TEST_DAYS)
    dates = [datetime.date.fromordinal(day) for day in days]
    pairs = [(written(date, draw), date.isoformat()) for date in dates]
    train, test = pairs[TEST_DAYS:], pairs[:TEST_DAYS]
    assert not {iso for _, iso in train} & {iso for _, iso in test}
    table = "| attention | dates right |\n|---|---|"
    for kind in ("none", "global"):
        translator = Translator.fit(
            train,
            run_dir=f"runs/dates/{kind}",
            test=test,
            train_only=True,
            epochs=DATES_READ // DAYS,
            metric="exact_match",
            data={"sentencepiece": {"model_type": "char"}},
            model={"attention": {"kind": kind}},
        )
        found = translator.translate([text for text, _ in test])
        right = sum(f == iso for f, (_, iso) in zip(found, test, strict=True))
        table += f"\n| {kind} | {right / TEST_DAYS:.1%} |"
    print(table)
    best = translator.nbest(["Saturday, May 3, 1997"])[0][0]
    for token, weights in zip(best.tokens, best.alignments, strict=True):
        source = best.source_tokens
        place = weights.argmax()
        before, after = "".join(source[:place]), "".join(source[place + 1 :])
        print(token, f"{weights[place]:4.0%}  {before}[{source[place]}]{after}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
