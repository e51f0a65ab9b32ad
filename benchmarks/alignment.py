"""Alignment error rate of trained runs on hand-aligned sentences.

    LUONG_KERAS_DATA=folder python benchmarks/alignment.py --run-dir RUN
    python benchmarks/alignment.py builtin --train --run-dir runs/en-de \
        --reverse-run-dir runs/de-en --eflomal .venv-of-align/bin/eflomal-align

`europarl100`, the default, is `folder/alignments` with `.en.gz` and `.de.gz`
and German-English links, 0-based and all sure: another domain than the training
text of most runs. `builtin` is the test pairs of the built-in corpus with the
links of its grammar, their words separated by spaces. Word links come from
`Translator.links`, for the step that produces a word and for the step that
reads it. With a run of the other direction the links of both directions are
symmetrised by every method. `--train` first trains the missing runs with the
preset `demo`. `--eflomal` aligns the same sentences with eflomal, which learns
from the training text of the run and from these sentences, in lower case.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from speed.command_line import data_folder, make_parser

from luong_keras import Translator
from luong_keras.alignment import LinkScores, parse_alignments, symmetrize
from luong_keras.alignment.symmetrization import METHODS
from luong_keras.data import Corpus, phrasebook
from luong_keras.files.text_lines import read_lines
from luong_keras.recipe.stored_settings import run_config
from luong_keras.text.word_splitting import split_13a
from luong_keras.training import RunFolder


def main() -> None:
    """Print the scores of every method to make links."""
    parser = make_parser(__doc__)
    parser.add_argument("text", nargs="?", default="europarl100", choices=TEXTS)
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--reverse-run-dir")
    parser.add_argument("--train", action="store_true", help="missing runs")
    parser.add_argument("--eflomal", help="the program eflomal-align")
    arguments = parser.parse_args()
    folders = [arguments.run_dir]
    if arguments.reverse_run_dir:
        folders.append(arguments.reverse_run_dir)
    if arguments.train:
        for folder, languages in zip(
            folders, (("en", "de"), ("de", "en")), strict=False
        ):
            train(folder, languages)
    data = run_config(folders[0]).data
    languages = data.source_language, data.target_language
    *text, gold = TEXTS[arguments.text](languages == ("de", "en"))
    print(f"{arguments.text}, {'-'.join(languages)}, {len(gold)} sentences")
    translators = [Translator.from_run(folder) for folder in folders]
    for step in ("produces", "reads"):
        links = [
            translator.links(*sides, step)
            for translator, sides in zip(
                translators, (text, text[::-1]), strict=False
            )
        ]
        show(f"step that {step} a word", links, gold)
    if arguments.eflomal:
        show("eflomal", eflomal(arguments.eflomal, folders[0], text), gold)


def show(what, links, gold):
    """Print error rate, precision and recall of one or two directions."""
    rows = {"forward": links[0]}
    if len(links) == 2:
        rows["backward"] = [[(i, j) for j, i in row] for row in links[1]]
        both = [*zip(rows["forward"], rows["backward"], strict=True)]
        for method in METHODS:
            rows[method] = [symmetrize(*pair, method) for pair in both]
    for name, found in rows.items():
        scores = LinkScores()
        for pair in zip(found, gold, strict=True):
            scores.add(*pair)
        print(
            f"{what}, {name:19}  AER {100 * scores.error_rate:5.2f} %  "
            f"precision {100 * scores.precision:5.2f} %  "
            f"recall {100 * scores.recall:5.2f} %",
            flush=True,
        )


def train(folder, languages):
    """Train the demonstration for a direction, unless it is finished."""
    if (Path(folder) / "finished.json").exists():
        return
    command = [sys.executable, "-m", "luong_keras", "train"]
    command += ["--preset", "demo", "--run-dir", folder, "--set"]
    command += [f"data.source_language={languages[0]}"]
    command += [f"data.target_language={languages[1]}"]
    subprocess.run(command, check=True)


def europarl100(reversed_direction):
    """Return source lines, target lines and gold links of Europarl."""
    folder = data_folder("alignments")
    english, german = (
        list(read_lines(folder / f"europarl100.{language}.gz"))
        for language in ("en", "de")
    )
    lines = read_lines(folder / "europarl100.de-en.gz")
    if reversed_direction:
        return german, english, parse_alignments(lines)
    links = [
        " ".join(f"{j}-{i}" for i, j in row.sure)
        for row in parse_alignments(lines)
    ]
    return english, german, parse_alignments(links)


def builtin(reversed_direction):
    """Return the same for the test pairs of the built-in corpus."""
    languages = ("de", "en") if reversed_direction else ("en", "de")
    sources, targets, links = zip(
        *phrasebook.split_pairs("test", None, languages), strict=True
    )
    sides = (split_13a(side).to_list() for side in (sources, targets))
    sources, targets = (
        [b" ".join(row).decode() for row in rows] for rows in sides
    )
    return sources, targets, parse_alignments(links)


def eflomal(program, run_dir, text):
    """Return eflomal's links of both directions, the second reversed."""
    corpus = Corpus.open(RunFolder(run_dir).corpus)
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in zip(("source", "target"), text, strict=True):
            words = split_13a(list(corpus.side_lines(name))).to_list()
            known = [b" ".join(row).decode() for row in words]
            whole = "".join(f"{line.lower()}\n" for line in [*known, *lines])
            Path(folder, name).write_text(whole, encoding="utf-8")
        flags = ("-s", "source", "-t", "target", "-f", "one", "-r", "other")
        subprocess.run(
            [Path(program).absolute(), *flags], cwd=folder, check=True
        )
        one, other = (
            parse_alignments(Path(folder, name).read_text().splitlines())
            for name in ("one", "other")
        )
    count = len(text[0])
    forward = [row.possible for row in one[-count:]]
    return forward, [
        [(j, i) for i, j in row.possible] for row in other[-count:]
    ]


TEXTS = {"europarl100": europarl100, "builtin": builtin}

if __name__ == "__main__":
    main()
