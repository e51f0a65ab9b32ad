r"""Minutes of training to a given BLEU, for ours and Joey NMT.

    LUONG_KERAS_DATA=folder python benchmarks/time_to_quality.py \
        --python joeynmt=PATH --limit 75

Both trainers read the same text of Multi30k, English to German, normalised,
tokenised and lower-cased before, in the same subwords. Both validate on `val`
by greedy search after every epoch and write the translations, which are scored
here (BLEU of the tokens, without further tokenisation). The minutes are CPU
time of the whole process on one core. They include validation and all other
work of a trainer, and hardly depend on other load of the machine. `--set`
changes settings of our preset `small-fast`.

Joey NMT's model has the same sizes. Its training has the recipe of its
`configs/iwslt_deen_bahdanau.yaml` (Adam, batches of 64, a learning rate of
0.001 that halves after an epoch without improvement), with our dropout and
label smoothing. Its output layer cannot share the embeddings' weights if the
two differ in width.

The requested programs are trained anew. The table keeps its rows of all other
programs, so the programs can be measured one after the other.
"""

import csv
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml
from speed import driver
from speed.batches import LANGUAGES, write_multi30k
from speed.command_line import make_parser
from speed.joeynmt_config import preset_model, run_config, subword_side
from speed.worker import pin

from luong_keras.presets import PRESETS

GOALS = (30, 33, 36)
NAMES = {"ours": "luong_keras", "joeynmt": "Joey NMT"}
SMALL = PRESETS["small-fast"]


def main() -> None:
    """Train, score every epoch, and write the table and the plot."""
    parser = make_parser(__doc__)
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
    folder = (options.output / "time_to_quality").resolve()
    text = folder / "text"
    for part in ("train", "val"):
        write_multi30k(text, part, preparation)
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
            driver.write_csv(table, rows)
    report(rows, options)


def preparation(language):
    """Return the function that prepares the lines of a language."""
    from luong_keras.text.preprocessing import Preprocessor

    return Preprocessor(
        language, normalize_punctuation=True, tokenize=True, lowercase=True
    )


def subwords(folder, text):
    """Train the SentencePiece model that ours makes of this text too."""
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
    """Return our command, and a function that lists its translations."""
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
    """Return Joey NMT's command, and a function for its translations."""
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
    # Not JSON, because YAML reads its 1e-05 as a string.
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = ["-m", "speed.joeynmt_command", "train", str(path)]
    command += ["--skip-test"]

    def hypotheses():
        found = (folder / "joeynmt").glob("*.hyps")
        return sorted(found, key=lambda path: int(path.stem))

    return command, hypotheses


COMMANDS = {"ours": ours, "joeynmt": joeynmt}


def followed(name, command, hypotheses, folder, options):
    """Train, and yield the minutes and BLEU of each validation.

    Args:
        name: Name of the program.
        command: The arguments of its Python.
        hypotheses: Function that lists the current translations of `val`.
        folder: Folder of the log.
        options: Options of this benchmark.

    Raises:
        ProgramFailed: The program ended without a validation.
    """
    # Otherwise an interrupted training run would continue.
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
    """Return the CPU minutes of a process and of its finished children."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    times = stat.rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") / 60


def is_whole(path, references):
    """Test whether a file has a line for each reference."""
    counts = [
        file.read_text(encoding="utf-8").count("\n")
        for file in (path, references)
    ]
    return counts[0] == counts[1]


def bleu(path, references):
    """Return BLEU of the tokens in two files."""
    from sacrebleu import corpus_bleu

    found, wanted = (
        file.read_text(encoding="utf-8").splitlines()
        for file in (path, references)
    )
    # The text is already tokenised.
    return corpus_bleu(found, [wanted], tokenize="none", force=True).score


def read_rows(path):
    """Read the rows of an earlier table, if any."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def first_minute(rows, goal):
    """Return the minute when BLEU first reached a goal, as text.

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
    """Print the table, and write the table and the plot."""
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
    path = written.write_text()
    figure.savefig(path.with_suffix(".png"), dpi=120, bbox_inches="tight")
    print(f"written to {path}.txt, .csv and .png")


if __name__ == "__main__":
    main()
