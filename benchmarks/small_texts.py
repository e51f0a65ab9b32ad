"""Scores of the plain command on hundreds of pairs, by epoch.

    python benchmarks/small_texts.py
    python benchmarks/small_texts.py mine.tsv --folder runs/mine

200 pairs of each file are a test set. `luong-keras train` trains on the other
pairs with no setting except `training.keep`, which keeps the weights of the
last epochs. The table has the test scores of the exported weights and of
the last epochs, and the minutes of training. Without files the program writes
three texts: numbers in words, the same backwards, and inflections of made-up
stems.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

from speed.command_line import make_parser

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ENDS = {"past": "ed", "plural": "s", "participle": "ing"}
TEST_PAIRS = 200


def main() -> None:
    """Train on each file and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("runs/small-texts"))
    parser.add_argument("--keep", type=int, default=5, help="last epochs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    files = options.files or written(options.folder)
    print("| text | pairs | metric | exported | last epochs | minutes |")
    print("|---|---|---|---|---|---|", flush=True)
    for path in files:
        print(row(path, options.folder, options.keep), flush=True)


def row(path: Path, folder: Path, keep: int) -> str:
    """Train on all except the test pairs; return a line of the table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)
    parts = {"test": lines[:TEST_PAIRS], "train": lines[TEST_PAIRS:]}
    for part, some in parts.items():
        text = "".join(f"{line}\n" for line in some)
        (folder / f"{path.stem}.{part}.tsv").write_text(text, encoding="utf-8")
    run = folder / path.stem
    test, train = (folder / f"{path.stem}.{part}.tsv" for part in parts)
    command = ["-m", "luong_keras", "train", str(train), "--test", str(test)]
    command += ["--run-dir", str(run), "--set", f"training.keep={keep}"]
    with open(folder / f"{path.stem}.log", "w", encoding="utf-8") as log:
        subprocess.run(
            [sys.executable, *command], stdout=log, stderr=log, check=True
        )

    from luong_keras import RunConfig, Translator
    from luong_keras.evaluation.metrics.bleu import target_of
    from luong_keras.evaluation.metrics.registry import find_metric
    from luong_keras.recipe.stored_settings import run_config

    config: RunConfig = run_config(run)
    pairs = [line.split("\t")[:2] for line in parts["test"]]
    sources, references = map(list, zip(*pairs, strict=True))
    target = target_of(config.data, references)
    metric = find_metric(config.training.metric, target)
    log_lines = (run / "log.jsonl").read_text().splitlines()
    last = json.loads(log_lines[-1])["epoch"]
    names = ["best", *(f"epoch-{last - n}" for n in reversed(range(keep)))]
    scores = []
    for name in names:
        translator = Translator.from_run(run, name)
        found = translator.translate(sources)
        scores.append(metric.scored(found, references)["score"])
    others = ", ".join(f"{score:.1f}" for score in scores[1:])
    return (
        f"| {path.stem} | {len(parts['train'])} | {metric.setting} | "
        f"{scores[0]:.1f} | {others} | {minutes_of(run):.1f} |"
    )


def minutes_of(run: Path) -> float:
    """Return the minutes of all calls that trained a run."""
    sessions = (run / "sessions.jsonl").read_text(encoding="utf-8")
    return sum(json.loads(x)["seconds"] for x in sessions.splitlines()) / 60


def written(folder: Path) -> list[Path]:
    """Write files of generated pairs."""
    generator = random.Random(7)
    numbers = generator.sample(range(20, 1000), 900)
    stems = {
        "".join(generator.choice(s) for s in ("bdfgkl", "aeiou", "mnprst"))
        + generator.choice(["", "ab", "elk", "ort"])
        for _ in range(1500)
    }
    forms = []
    for stem in sorted(stems):
        form = generator.choice(sorted(ENDS))
        forms.append((f"{stem} {form}", stem + ENDS[form]))
    texts = {
        "numbers": [(f"{n}", in_words(n)) for n in numbers],
        "numbers_back": [
            (f"the number is {in_words(n)} today", f"{n}") for n in numbers
        ],
        "inflections": forms,
    }
    for name, pairs in texts.items():
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return [folder / f"{name}.tsv" for name in texts]


def in_words(number: int) -> str:
    """Return a number below 1,000 in English words.

    Example:
        >>> in_words(342)
        'three hundred and forty two'
    """
    hundreds, rest = divmod(number, 100)
    if hundreds:
        more = f" and {in_words(rest)}" if rest else ""
        return f"{in_words(hundreds)} hundred{more}"
    tens, ones = divmod(number, 10)
    if tens < 2:
        return ONES.split()[number]
    return TENS.split()[tens - 2] + (f" {in_words(ones)}" if ones else "")


if __name__ == "__main__":
    main()
