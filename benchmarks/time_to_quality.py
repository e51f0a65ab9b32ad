r"""Minutes of training until a translator is good, ours and Joey NMT's.

    LUONG_KERAS_DATA=folder python benchmarks/time_to_quality.py \
        --python joeynmt=PATH --limit 75

Both trainers read the same text of Multi30k, English to German, normalised,
tokenised and lower-cased before, cut into the same subwords; both validate by
greedy search after every epoch, on `val`, and write the translations, which
are scored here (BLEU of the tokens as they are). A minute is one of CPU time
of the whole process on one core, so validation and what else a trainer does
are in it, and other work on the machine hardly is. What `--set` says goes to
our preset `small-fast`.

Joey NMT's model has the same sizes and its training the recipe of its own
`configs/iwslt_deen_bahdanau.yaml` (Adam by 0.001, batches of 64, halved
whenever an epoch was no better), with dropout and label smoothing as ours;
its output layer cannot share the embeddings' weights where the two differ in
width.

Each program that is asked for is trained anew; of one that is not, what the
table had stays, so that they can be measured one after the other.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml
from speed import driver
from speed.joeynmt_config import preset_model, run_config, subword_side
from speed.worker import pin

from luong_keras.presets import PRESETS

LANGUAGES = ("en", "de")
GOALS = (30, 33, 36)
NAMES = {"ours": "luong_keras", "joeynmt": "Joey NMT"}
COLUMNS = ("program", "validation", "minutes", "bleu")
SMALL = PRESETS["small-fast"]


def main() -> None:
    """Trains, scores every epoch, and writes table and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="interpreter of joeynmt; this one where not given",
    )
    parser.add_argument("--output", type=Path, default=Path("runs/benchmarks"))
    parser.add_argument(
        "--programs",
        nargs="+",
        choices=COMMANDS,
        default=list(COMMANDS),
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=75,
        help="minutes of CPU time of each program; default: %(default)s",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings of ours",
    )
    options = parser.parse_args()
    driver.finish(options, "time_to_quality")
    if "LUONG_KERAS_DATA" not in os.environ:
        sys.exit("Set LUONG_KERAS_DATA to the folder that has multi30k/.")
    folder = (options.output / "time_to_quality").resolve()
    text = written_text(folder / "text")
    table = options.output / f"{options.table}.csv"
    rows = [
        row
        for row in read_rows(table)
        if row["program"] not in options.programs
    ]
    for name in options.programs:
        command, hypotheses = COMMANDS[name](folder, text, options)
        for row in followed(name, command, hypotheses, folder, options):
            rows.append({"program": name, **row})
            write_rows(table, rows)
    report(rows, options)


def written_text(folder):
    """The prepared text, a file of each part and language; once."""
    from luong_keras.data.parallel_text import read_lines
    from luong_keras.text.preprocessing import Preprocessor

    source = Path(os.environ["LUONG_KERAS_DATA"], "multi30k")
    folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        prepare = Preprocessor(
            language, normalize_punctuation=True, tokenize=True, lowercase=True
        )
        for part in ("train", "val"):
            path = folder / f"{part}.{language}"
            if not path.exists():
                lines = read_lines(source / f"{part}.{language}.gz")
                text = "\n".join(map(prepare, lines)) + "\n"
                path.write_text(text, encoding="utf-8")
    return folder


def subwords(folder, text):
    """The SentencePiece model that ours makes of this text as well."""
    from luong_keras.tokenizers import SentencePieceTokenizer

    path = folder / "subwords.model"
    if not path.exists():
        lines = [
            line
            for language in LANGUAGES
            for line in (text / f"train.{language}")
            .read_text(encoding="utf-8")
            .splitlines()
        ]
        size = SMALL.model.target_vocabulary_size
        tokenizer = SentencePieceTokenizer.train(lines, size)
        path.write_bytes(tokenizer.file_bytes())
    return path


def ours(folder, text, options):
    """Our command, and where the translations of an epoch will be."""
    run = folder / "ours"
    settings = [
        f"data.train={text / 'train'}",
        f"data.dev={text / 'val'}",
        f"data.test={text / 'val'}",
        "training.samples=0",
        *options.set,
    ]
    command = ["-m", "luong_keras", "train", "--preset", "small-fast"]
    command += ["--run-dir", str(run), "--set", *settings]
    return command, lambda: sorted((run / "samples").glob("epoch-*.txt"))


def joeynmt(folder, text, options):
    """Joey NMT's command, and where the translations of an epoch will be."""
    del options
    lines = (text / "train.en").read_text(encoding="utf-8").count("\n")
    an_epoch = lines // SMALL.training.batch_size
    side = subword_side(subwords(folder, text), folder)
    config = run_config(
        SMALL.training,
        folder / "joeynmt",
        text / "train",
        text / "val",
        side,
        {
            "epochs": 100,
            "scheduling": "plateau",
            "patience": 0,
            "decrease_factor": 0.5,
            "learning_rate_min": 0.00001,
            "early_stopping_metric": "bleu",
            "label_smoothing": SMALL.training.label_smoothing,
            "validation_freq": an_epoch,
            "logging_freq": an_epoch,
            "overwrite": True,
            "random_seed": 1,
        },
        model=preset_model(SMALL.model),
    )
    config["testing"] = {
        "max_output_length": 100,
        "eval_metrics": ["bleu"],
        "sacrebleu_cfg": {"tokenize": "none"},
    }
    path = folder / "joeynmt.yaml"
    # Not JSON, whose 1e-05 is a text in YAML.
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = ["-m", "speed.joeynmt_command", "train", str(path)]
    command += ["--skip-test"]

    def hypotheses():
        found = (folder / "joeynmt").glob("*.hyps")
        return sorted(found, key=lambda path: int(path.stem))

    return command, hypotheses


COMMANDS = {"ours": ours, "joeynmt": joeynmt}


def followed(name, command, hypotheses, folder, options):
    """Trains, and yields minutes and BLEU of each validation.

    Args:
        name: of the program.
        command: the arguments of its Python.
        hypotheses: lists the files with translations of `val` so far.
        folder: of the log.
        options: of this benchmark.

    Raises:
        ProgramFailed: It ended by itself, by an error.
    """
    # A training that was cut off would be continued with.
    shutil.rmtree(folder / name, ignore_errors=True)
    log = folder / f"{name}.log"
    variables = driver.MEMORY_POOL if name == "ours" else {}
    program = driver.Program(name, "", variables=variables)
    with log.open("w", encoding="utf-8") as messages:
        process = subprocess.Popen(
            [options.pythons.get(name, sys.executable), *command],
            stdout=messages,
            stderr=subprocess.STDOUT,
            env=driver.environment(program, cores=1),
            preexec_fn=lambda: pin(1),
        )
    references = folder / "text" / "val.de"
    seen, minutes = {}, 0.0
    try:
        while process.poll() is None and minutes < options.limit:
            time.sleep(1)
            minutes = cpu_minutes(process.pid) or minutes
            for path in hypotheses():
                if path.name not in seen and is_whole(path, references):
                    seen[path.name] = minutes
                    score = bleu(path, references)
                    print(f"{name}: {minutes:.1f} min, BLEU {score:.2f}")
                    yield {
                        "validation": len(seen),
                        "minutes": f"{minutes:.2f}",
                        "bleu": f"{score:.2f}",
                    }
    finally:
        process.terminate()
        process.wait()
    if not seen:
        raise driver.ProgramFailed(f"{name}: see {log}")


def cpu_minutes(pid):
    """The CPU time of a process with the children it has waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    times = stat.rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") / 60


def is_whole(path, references):
    """Whether a file has a line for each reference."""
    counts = [
        file.read_text(encoding="utf-8").count("\n")
        for file in (path, references)
    ]
    return counts[0] == counts[1]


def bleu(path, references):
    """BLEU of tokens as they stand in two files."""
    from sacrebleu import corpus_bleu

    found, wanted = (
        file.read_text(encoding="utf-8").splitlines()
        for file in (path, references)
    )
    # Tokenised text is what is wanted here.
    return corpus_bleu(found, [wanted], tokenize="none", force=True).score


def read_rows(path):
    """Those of an earlier table."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows):
    """All rows as they are so far."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def first_minute(rows, goal):
    """When a program's BLEU first reached a goal, as text.

    Example:
        >>> rows = [{"minutes": "2.5", "bleu": "29"},
        ...         {"minutes": "5.1", "bleu": "31"}]
        >>> first_minute(rows, 30), first_minute(rows, 40)
        ('5.1', '-')
    """
    for row in rows:
        if float(row["bleu"]) >= goal:
            return f"{float(row['minutes']):.1f}"
    return "-"


def report(rows, options):
    """Prints the table, writes it and the plot."""
    from matplotlib.figure import Figure

    written = driver.Report(options)
    figure = Figure(figsize=(7, 4))
    axes = figure.subplots()
    table = []
    for name in dict.fromkeys(row["program"] for row in rows):
        own = [row for row in rows if row["program"] == name]
        minutes, scores = (
            [float(row[key]) for row in own] for key in ("minutes", "bleu")
        )
        axes.plot(minutes, scores, marker="o", label=NAMES[name])
        reached = [first_minute(own, goal) for goal in GOALS]
        best = f"{max(scores):.2f}, {minutes[scores.index(max(scores))]:.1f}"
        table.append([name, *reached, best])
    for goal in GOALS:
        axes.axhline(goal, color="grey", linewidth=0.5)
        axes.annotate(
            f"goal: BLEU {goal}",
            (1, goal),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="dimgrey",
        )
    axes.set_xlabel("minutes of CPU time, one core")
    axes.set_ylabel("BLEU on val, greedy search")
    axes.legend()
    goals = [f"min to BLEU {goal}" for goal in GOALS]
    written.table(["program", *goals, "best BLEU, after min"], table)
    path = options.output / options.table
    text = "\n".join(written.lines) + "\n"
    path.with_suffix(".txt").write_text(text, encoding="utf-8")
    figure.savefig(path.with_suffix(".png"), dpi=120, bbox_inches="tight")
    print(f"written to {path}.txt, .csv and .png")


if __name__ == "__main__":
    main()
