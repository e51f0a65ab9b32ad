"""Driver that times programs by turns, in separate processes."""

import contextlib
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from speed.command_line import make_parser

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# TensorFlow reuses the memory of a training step for the next one, as in the
# recipe; version 2.15 does so by default.
_POOL = "TF_CPU_ALLOCATOR_USE_BFC"
MEMORY_POOL = {_POOL: os.environ.get(_POOL, "true")}


@dataclass(frozen=True)
class Program:
    """Program to run in one process.

    Attributes:
        name: Name in the tables.
        make: `module:function` of this package, which returns a `Work`.
        arguments: Arguments of that function.
        python: Name of its Python environment, as given by `--python`.
        variables: Its environment variables.
        cores: Number of cores; None for the option of the command line.
    """

    name: str
    make: str
    arguments: dict = field(default_factory=dict)
    python: str = "ours"
    variables: dict = field(default_factory=dict)
    cores: int | None = None


class ProgramFailed(Exception):
    """Error of a process that ended before its answer."""


class Worker:
    """Process of one program."""

    def __init__(self, program, options):
        self.program = program
        name = program.name.replace(" ", "-").replace("/", "-")
        cores = options.cores if program.cores is None else program.cores
        self.log = options.output / f"{options.table}-{name}.log"
        job = {
            "make": program.make,
            "arguments": program.arguments,
            "cores": cores,
        }
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [
                    options.pythons.get(program.python, sys.executable),
                    "-m",
                    "speed.worker",
                    json.dumps(job),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(program, cores),
            )

    def answer(self):
        """Read the next answer of the process."""
        line = self.process.stdout.readline()
        if not line:
            lines = self.log.read_text(encoding="utf-8").strip().splitlines()
            raise ProgramFailed(
                f"{self.program.name}: {lines[-1] if lines else 'no message'}"
                f" (see {self.log})"
            )
        return json.loads(line)

    def run(self, steps):
        """Run some steps and return the answer, with times per step."""
        # If the process has ended, `answer` raises the reason.
        with contextlib.suppress(BrokenPipeError):
            print(steps, file=self.process.stdin, flush=True)
        measured = self.answer()
        for clock in ("wall", "cpu"):
            measured[clock] /= steps
        return measured

    def close(self):
        """End the process by ending its input."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def environment(program, cores):
    """Return the environment variables of a process: paths and threads."""
    path = [str(HERE.parent), str(ROOT), os.environ.get("PYTHONPATH", "")]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "PYTHONWARNINGS": "ignore",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    if cores:
        for name in (
            "OMP_NUM_THREADS",
            "TF_NUM_INTRAOP_THREADS",
            "TF_NUM_INTEROP_THREADS",
        ):
            variables[name] = str(cores)
    return {**variables, **program.variables}


def of_checkout(folder):
    """Return the variables to run the package and programs of a folder."""
    # PYTHONSAFEPATH keeps the current folder out of the import path.
    path = Path(folder).resolve() / HERE.parent.name, Path(folder).resolve()
    return {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONSAFEPATH": "1",
    }


@dataclass
class Measured:
    """Results of one program: its first answer and one dict per round.

    `first` is the first run, which compiles.
    """

    program: Program
    built: dict
    first: dict
    rounds: list

    def values(self, name):
        """Return one number per round."""
        return [measured[name] for measured in self.rounds]

    def median(self, name):
        """Return the median of the rounds."""
        return statistics.median(self.values(name))


def measure(programs, options):
    """Run all programs by turns; omit programs that fail.

    Returns:
        A dict of `Measured` by name, in the order of the programs.
    """
    workers, results = [], {}

    def attempt(worker, action):
        try:
            action(worker)
        except ProgramFailed as failure:
            print(f"left out: {failure}", file=sys.stderr)
            results.pop(worker.program.name, None)
            workers.remove(worker)
            worker.close()

    def begin(worker):
        built, first = worker.answer(), worker.run(options.steps)
        name = worker.program.name
        results[name] = Measured(worker.program, built, first, [])

    def take_turn(worker):
        found = worker.run(options.steps)
        results[worker.program.name].rounds.append(found)

    try:
        # One after the other, so no program builds during a first run.
        for program in programs:
            workers.append(Worker(program, options))
            attempt(workers[-1], begin)
        for _ in range(options.rounds):
            for worker in list(workers):
                attempt(worker, take_turn)
    finally:
        for worker in workers:
            worker.close()
    return results


def per_words(results, steps, count):
    """Convert the times of a step to times of `count` of its `words`."""
    for found in results.values():
        for measured in found.rounds:
            for clock in ("cpu", "wall"):
                measured[clock] *= count * steps / measured["words"]


def reference_of(results, options):
    """Return the name of the program to compare all others with."""
    if not results:
        sys.exit("No program ran.")
    if options.reference in results:
        return options.reference
    first = next(iter(results))
    print(f"compared with {first!r}: no {options.reference!r}", file=sys.stderr)
    return first


def ours_of(results, name):
    """Return the name of "ours" in the precision of a program, if it ran."""
    names = f"ours {name.split()[-1]}", "ours"
    return next((ours for ours in names if ours in results), None)


def ratios(results, name, reference, clock):
    """Return the speeds relative to the reference, round by round."""
    return [
        theirs / own
        for theirs, own in zip(
            results[reference].values(clock),
            results[name].values(clock),
            strict=True,
        )
    ]


def spread(numbers, form):
    """Format the median, and the lowest and the highest number."""
    middle = statistics.median(numbers)
    return f"{middle:{form}} ({min(numbers):{form}}-{max(numbers):{form}})"


class Report:
    """Printed tables, which are also written as text, CSV and plot."""

    def __init__(self, options):
        self.options = options
        self.lines, self.rows = [], []
        self.described = set()
        self.shown = {}  # data of the plot: group -> program -> numbers
        self.say(machine())
        self.say("command: " + " ".join(sys.argv))

    def say(self, text=""):
        """Print a line and add it to the written report."""
        print(text, flush=True)
        self.lines.append(text)

    def table(self, head, rows):
        """Print rows of text under their heads, in columns."""
        rows = [list(map(str, row)) for row in [head, *rows]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(row, widths, strict=True)
            self.say("  ".join(cell.ljust(width) for cell, width in cells))
        self.say()

    def environments(self, results):
        """Print versions, threads and sizes of programs not yet shown."""
        fresh = [name for name in results if name not in self.described]
        self.described.update(fresh)
        for name in fresh:
            built = results[name].built
            parts = [
                *(f"{k} {v}" for k, v in built["versions"].items()),
                *(f"{k}: {v}" for k, v in built["threads"].items()),
            ]
            if built["parameters"]:
                parts.append(f"{built['parameters']:,} parameters")
            self.say(f"{name}: {', '.join(parts)}")
        if fresh:
            self.say()

    def times(self, group, results, columns=None, unit="a step"):
        """Print the table of one group of programs and keep its rows.

        Args:
            group: Name of the group on the x axis of the plot.
            results: Results of `measure`.
            columns: Further columns, functions of a `Measured` by head.
            unit: Unit of work that the times are for.
        """
        columns = columns or {}
        clock = self.options.clock
        reference = reference_of(results, self.options)
        head = ["program", "CPU ms", "wall ms"]
        head += [f"ratio to {reference}", "time / ours"]
        rows = []
        for name, found in results.items():
            compared = ratios(results, name, reference, clock)
            self.shown.setdefault(group, {})[name] = compared
            ours = ours_of(results, name)
            rows.append(
                [
                    name,
                    spread([1e3 * t for t in found.values("cpu")], ".1f"),
                    spread([1e3 * t for t in found.values("wall")], ".1f"),
                    spread(compared, ".2f"),
                    spread(ratios(results, ours, name, clock), ".2f")
                    if ours
                    else "-",
                    *(column(found) for column in columns.values()),
                ]
            )
            self.keep(group, name, found, ratio=compared)
        self.say(f"{group}: {unit}, median (lowest-highest of the rounds)")
        self.table([*head, *columns], rows)

    def keep(self, group, name, found, **further):
        """Keep every round of a program for the CSV."""
        for number, measured in enumerate(found.rounds):
            row = {"group": group, "program": name, "round": number}
            values = {key: column[number] for key, column in further.items()}
            self.rows.append({**row, **values, **measured})

    def write(self, title, unit="times as fast as the reference"):
        """Write the text, a CSV of every round, and a plot."""
        path = self.write_text()
        write_csv(path.with_suffix(".csv"), self.rows)
        self._plot(title, unit, path.with_suffix(".png"))
        print(f"written to {path}.txt, .csv and .png")

    def write_text(self):
        """Write the text; return its path without the suffix."""
        path = self.options.output / self.options.table
        text = "\n".join(self.lines) + "\n"
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
        return path

    def _plot(self, title, unit, path):
        from matplotlib.figure import Figure

        names = dict.fromkeys(n for group in self.shown.values() for n in group)
        width = 0.8 / max(len(names), 1)
        labels = {name: name for name in names}  # each label once
        figure = Figure(figsize=(2 + 2.2 * len(self.shown), 4))
        axes = figure.subplots()
        for index, name in enumerate(names):
            for place, found in enumerate(self.shown.values()):
                if name not in found:
                    continue
                middle = statistics.median(found[name])
                axes.bar(
                    place + (index - (len(names) - 1) / 2) * width,
                    middle,
                    width,
                    yerr=[
                        [middle - min(found[name])],
                        [max(found[name]) - middle],
                    ],
                    color=f"C{index}",
                    label=labels.pop(name, None),
                )
        axes.set_xticks(range(len(self.shown)), list(self.shown))
        axes.set_ylabel(unit)
        axes.set_title(title)
        axes.legend(fontsize="small", bbox_to_anchor=(1, 1), loc="upper left")
        figure.savefig(path, dpi=120, bbox_inches="tight")


def write_csv(path, rows):
    """Write dicts as rows, with the columns of all of them."""
    names = dict.fromkeys(name for row in rows for name in row)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def found_file(options, name):
    """Return the path of a program's translations."""
    name = f"{options.table}-{name.replace(' ', '-')}-found.txt"
    return options.output.resolve() / name


def bleu_column(options, references):
    """Return a column with lower-cased BLEU of the programs' translations."""
    import sacrebleu

    wanted = [line.lower() for line in references]

    def bleu(found):
        text = found_file(options, found.program.name).read_text("utf-8")
        lines = text.lower().split("\n")
        return f"{sacrebleu.corpus_bleu(lines, [wanted]).score:.2f}"

    return bleu


def machine():
    """Describe the revision, the day and this computer."""
    model, memory = platform.processor() or "unknown processor", ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = [
                x.split(":")[1].strip() for x in lines if "model name" in x
            ]
        model = models[0] if models else model
        with open("/proc/meminfo", encoding="utf-8") as lines:
            memory = f", {int(next(lines).split()[1]) / 2**20:.0f} GiB"
    except OSError:
        pass
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = ""
    with contextlib.suppress(FileNotFoundError):
        revision = subprocess.run(git, capture_output=True, text=True).stdout
    return (
        f"revision {revision.strip() or 'unknown'}, {date.today()}\n"
        f"machine: {model}, {os.cpu_count()} cores{memory}, "
        f"{platform.system()} {platform.machine()}, load "
        f"{os.getloadavg()[0]:.2f}"
    )


def add_precision(parser):
    """Add the option for the precisions of the programs."""
    both = ("float32", "bfloat16")
    parser.add_argument("--precision", nargs="+", choices=both, default=both)


def by_name(*programs):
    """Return programs by their names."""
    return {program.name: program for program in programs}


def in_precisions(programs, precisions, common, variables=None):
    """Return the programs in each precision that they support.

    Args:
        programs: Programs with the arguments and variables of only them.
        precisions: Values of `--precision`; Addons has only float32.
        common: Arguments of all programs.
        variables: Environment variables of all programs.
    """
    found = []
    for precision in precisions:
        for program in programs:
            own = {"precision": precision}
            if program.python == "addons":
                own = {}
                if precision != "float32":
                    continue
            found.append(
                replace(
                    program,
                    name=f"{program.name} {precision}",
                    arguments={**common, **program.arguments, **own},
                    variables={**(variables or {}), **program.variables},
                )
            )
    return found


def before(options, program):
    """Return the program of the checkout `--before`, if any."""
    if options.before is None:
        return []
    variables = {**program.variables, **of_checkout(options.before)}
    return [replace(program, name="before", variables=variables)]


def parser(description, rounds, steps, reference):
    """Make an argument parser with the common options of all tables.

    If `steps` is None, it has no option for the steps.
    """
    made = make_parser(description)
    made.add_argument(
        "--rounds", type=int, default=rounds, help="default: %(default)s"
    )
    if steps is not None:
        made.add_argument(
            "--steps",
            type=int,
            default=steps,
            help="steps of a program in a round; default: %(default)s",
        )
    made.add_argument(
        "--cores", type=int, default=1, help="0: all; default: %(default)s"
    )
    made.add_argument(
        "--reference", default=reference, help="default: %(default)s"
    )
    made.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="interpreter of an environment: torch, addons, joeynmt, marian "
        "or keras-on-torch; this one where not given",
    )
    made.add_argument("--output", type=Path, default=Path("runs/benchmarks"))
    return made


def finish(options, table, clock="cpu"):
    """Check and complete parsed options.

    Args:
        options: Options parsed by `parser`.
        table: Name of the written files.
        clock: `"cpu"` or `"wall"`, the times that the ratios compare.
    """
    options.table, options.clock = table, clock
    wrong = [given for given in options.python if "=" not in given]
    if wrong:
        sys.exit(f"Expected: --python NAME=PATH. Received: {wrong[0]}")
    options.pythons = dict(g.split("=", 1) for g in options.python)
    options.output.mkdir(parents=True, exist_ok=True)
    # For this process, which tokenises text for the programs.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
