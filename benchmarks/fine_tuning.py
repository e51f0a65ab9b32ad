"""Fine-tuning, compared with training anew and with the parent run.

    LUONG_KERAS_DATA=folder PYTHONPATH=examples python benchmarks/fine_tuning.py

The parent learns captions (`--base-pairs` pairs of Multi30k). The other text is
the built-in corpus (`--domain-pairs` pairs). For every seed the program trains

- base: the parent run, with the preset small-fast;
- domain: only the other text, with the plain command;
- fine-tuned: the parent run on the other text, at two learning rates;
- mixed: the parent run on both texts, with equally many pairs in an epoch.

The table has BLEU on both test texts (`--test-pairs` pairs each): the mean over
the seeds, with half of its 95 % confidence interval by Student's distribution.
The interval covers the seeds, not the choice of the sentences. After an
interruption the same command continues.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from speed.batches import multi30k_pairs
from speed.command_line import make_parser

from luong_keras.data.phrasebook import split_pairs
from reproduction.comparison import half_width

ROWS = ("base", "domain", "fine-tuned 0.001", "fine-tuned 0.0002", "mixed")


def main() -> None:
    """Train the missing runs and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/fine-tuning"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--base-pairs", type=int, default=6000)
    parser.add_argument("--domain-pairs", type=int, default=1000)
    parser.add_argument("--test-pairs", type=int, default=300)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_texts(options)
    scores = {row: [] for row in ROWS}
    for seed in range(1, options.seeds + 1):
        for row in ROWS:
            run = options.folder / f"{row.replace(' ', '-')}-{seed}"
            train(row, run, seed, options.folder)
            scores[row].append([bleu(run, name) for name in ("base", "domain")])
    print("| weights | BLEU on captions | BLEU on the other text |")
    print("|---|---|---|")
    for row, found in scores.items():
        print(
            "|", row, "|", " | ".join(map(shown, zip(*found, strict=True))), "|"
        )


def write_texts(options: argparse.Namespace) -> None:
    """Write the training and test pairs of both texts to files."""
    parts = {
        "base.train": captions("train")[: options.base_pairs],
        "base.dev": captions("val")[: options.test_pairs],
        "base.test": captions("test_2016_flickr")[: options.test_pairs],
        "domain.train": split_pairs("train", options.domain_pairs),
        "domain.dev": split_pairs("dev", 100),
        "domain.test": split_pairs("test", options.test_pairs),
    }
    for name, pairs in parts.items():
        text = "".join(f"{pair[0]}\t{pair[1]}\n" for pair in pairs)
        (options.folder / f"{name}.tsv").write_text(text, encoding="utf-8")


def captions(part: str) -> list[list[str]]:
    """Return the pairs of a part of Multi30k."""
    # The German training text has a tab, which separates .tsv columns.
    return [
        [side.strip().replace("\t", " ") for side in pair]
        for pair in multi30k_pairs(part)
    ]


def train(row: str, run: Path, seed: int, folder: Path) -> None:
    """Train one system, unless it is finished."""
    kind, _, rate = row.partition(" ")
    texts = {"base": ["base"], "mixed": ["domain", "base"]}.get(
        kind, ["domain"]
    )
    command = ["train", *(f"{folder}/{text}.train.tsv" for text in texts)]
    command += ["--dev", f"{folder}/{texts[0]}.dev.tsv"]
    command += ["--test", f"{folder}/{texts[0]}.test.tsv"]
    command += ["--run-dir", str(run), "--set", f"training.seed={seed}"]
    if kind == "base":
        command += ["--preset", "small-fast"]
    elif kind != "domain":
        command += ["--init-from", f"{folder}/base-{seed}"]
        command += ["--learning-rate", rate or "0.0002"]
        command += ["--epochs", "2" if kind == "mixed" else "10"]
    if kind == "mixed":
        command += ["--set", "data.weights=1,1"]
    with (folder / "log.txt").open("a") as log:
        call(command, stdout=log, stderr=log)


def bleu(run: Path, text: str) -> float:
    """Return BLEU of a run on the test pairs of a text."""
    path = run.parent / f"{text}.test.tsv"
    command = ["evaluate", str(path), "--run-dir", str(run), "--json"]
    found = call(command, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(found.splitlines()[-1])["bleu"]["score"]


def call(arguments: list[str], **options) -> subprocess.CompletedProcess:
    """Run the command; raise an error if it fails."""
    command = [sys.executable, "-m", "luong_keras", *arguments]
    return subprocess.run(command, check=True, **options)


def shown(scores: tuple[float, ...]) -> str:
    """Format a mean with half of its interval."""
    scores = np.array(scores)
    if len(scores) < 2:
        return f"{scores[0]:.1f}"
    width = half_width(scores.var(ddof=1) / len(scores), len(scores) - 1)
    return f"{scores.mean():.1f} ± {width:.1f}"


if __name__ == "__main__":
    main()
