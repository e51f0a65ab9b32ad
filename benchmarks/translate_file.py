r"""Time of each program's command to translate a whole file.

    LUONG_KERAS_DATA=folder python benchmarks/translate_file.py --cores 4 \
        --python marian=PATH --python joeynmt=PATH

The file has `--lines` sentences, drawn with a seed from `--text`, by default
the English side of Multi30k's test set. The models are the models of
`marian.py`, and one of Joey NMT, trained in the same way. Every command reads
its standard input and writes a file, with one thread per core of `--cores`, a
beam of 10 and batches of 32. The time for the first 32 lines is the start-up
time, which is subtracted: times and characters are for one further sentence.
Ratios compare wall times. Utilisation is the CPU time of the whole run,
start-up included, divided by the available time of the cores. `--lines-of
joeynmt=5000` gives a slow program fewer of the same lines.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from speed import driver, marian_options, trained
from speed.configurations import CONFIGURATIONS
from speed.worker import available_cores, pin

BATCH, BEAM = 32, 10
START = BATCH  # lines of the run that is subtracted
PROGRAMS = ("ours", "shortlist", "marian", "joeynmt")
ENVIRONMENTS = {"shortlist": "ours"}  # if the name differs
PACKAGES = ("tensorflow", "keras", "pymarian", "joeynmt", "torch")
VERSIONS = f"""
import json, platform
from importlib import metadata
installed = {{x.metadata["Name"].lower() for x in metadata.distributions()}}
found = [name for name in {PACKAGES} if name in installed]
versions = {{name: metadata.version(name) for name in found}}
print(json.dumps({{"python": platform.python_version(), **versions}}))
"""


def drawn(lines, count, seed):
    """Draw that many sentences with replacement.

    Example:
        >>> drawn(["a", "b"], 4, seed=1)
        ['a', 'b', 'b', 'a']
    """
    return random.Random(seed).choices(lines, k=count)


def command_of(name, models, cores):
    """Return the command that translates its standard input.

    Args:
        name: Name of the program.
        models: The `Trained` models.
        cores: Number of threads.

    Returns:
        The arguments of the program's Python.
    """
    if name in ("ours", "shortlist"):
        command = ["-m", "luong_keras", "translate", "--run-dir"]
        command += [str(models.run()), "--beam-size", str(BEAM)]
        if name == "shortlist":
            command += ["--shortlist", str(models.shortlist()[0])]
        return command
    if name == "marian":
        given = marian_options.decoding(
            models.marian(), models.vocabulary(), BEAM, BATCH, cores
        )
        return ["-m", "pymarian", "decode", *given, "--quiet-translation"]
    config = models.joeynmt(
        beam_size=BEAM, beam_alpha=1.0, batch_size=BATCH, batch_type="sentence"
    )
    return ["-m", "joeynmt", "translate", str(config)]


def taken(options, name, command, path, found):
    """Run a command; return its times and the length of its output.

    Args:
        options: Options of this benchmark.
        name: Name of the program, and of the file of its messages.
        command: Command of `command_of`.
        path: The file to translate, its standard input.
        found: The file to write.

    Raises:
        ProgramFailed: It failed, or did not write one line per input line.
    """
    log = options.output / f"{options.table}-{name}.log"
    program = driver.Program(name, "")
    # Ours divides the cores among its batches.
    threads = 0 if name in ("ours", "shortlist") else options.cores
    with (
        path.open(encoding="utf-8") as lines,
        found.open("w", encoding="utf-8") as output,
        log.open("a", encoding="utf-8") as messages,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            [python_of(options, name), *command],
            stdin=lines,
            stdout=output,
            stderr=messages,
            env=driver.environment(program, threads),
            preexec_fn=lambda: pin(options.cores),
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise driver.ProgramFailed(f"{name}: see {log}")
    expected, written = map(line_count, (path, found))
    if written != expected:
        raise driver.ProgramFailed(f"{name}: {written} lines of {expected}")
    return {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "characters": len(found.read_text(encoding="utf-8")),
    }


def python_of(options, name):
    """Return the interpreter of a program."""
    return options.pythons.get(ENVIRONMENTS.get(name, name), sys.executable)


def built(options, name):
    """Return a program's versions and threads, in the form of a worker."""
    command = [python_of(options, name), "-c", VERSIONS]
    finished = subprocess.run(
        command, check=True, capture_output=True, text=True
    )
    return {
        "versions": json.loads(finished.stdout),
        "threads": {"threads": options.cores},
        "parameters": None,
    }


def line_count(path):
    """Count the lines of a file."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return sum(1 for _ in file)


def a_sentence(few, many, lines, cores):
    """Return the times per sentence after the start, and other figures.

    Args:
        few: Result for the first `START` lines.
        many: Result for all `lines`.
        lines: Number of lines.
        cores: Number of cores that the process may use.
    """
    return {
        **{name: (many[name] - few[name]) / (lines - START) for name in many},
        "start": few["wall"],
        "whole": many["wall"],
        "utilisation": many["cpu"] / (many["wall"] * cores),
    }


def main() -> None:
    """Print and write the table."""
    parser = driver.parser(__doc__, 1, None, "ours")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--text", type=Path, help="a sentence a line")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument(
        "--lines-of",
        action="append",
        default=[],
        metavar="NAME=LINES",
        help="how many of them a program gets",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS
    )
    parser.add_argument("--epochs", type=int, default=trained.EPOCHS)
    options = parser.parse_args()
    driver.finish(options, f"translate_file-{options.config}", "wall")
    options.cores = options.cores or available_cores()
    own = dict(given.split("=", 1) for given in options.lines_of)
    counts = {n: int(own.get(n, options.lines)) for n in options.programs}
    models = trained.Trained(options, options.config, options.epochs)
    with tempfile.TemporaryDirectory() as folder:
        results = measured(options, models, counts, Path(folder))
    report(options, results, counts)


def measured(options, models, counts, folder):
    """Run all programs by turns; omit programs that fail."""
    from luong_keras.files.text_lines import read_lines

    text = options.text or models.path("test_2016_flickr.en")
    lines = [line for line in read_lines(text) if line.strip()]
    lines = drawn(lines, max(counts.values()), options.seed)

    def file_of(count):
        path = folder / f"{count}.txt"
        text = "\n".join(lines[:count]) + "\n"
        path.write_text(text, encoding="utf-8")
        return path

    results, commands = {}, {}
    for name in counts:
        try:
            commands[name] = command_of(name, models, options.cores)
        except driver.ProgramFailed as failure:
            print(f"left out: {failure}", file=sys.stderr)
            continue
        program = driver.Program(name, "")
        built_model = built(options, name)
        results[name] = driver.Measured(program, built_model, {}, [])
    for _ in range(options.rounds):
        for name in list(results):
            try:
                few, many = (
                    taken(
                        options,
                        name,
                        commands[name],
                        file_of(count),
                        folder / "found.txt",
                    )
                    for count in (START, counts[name])
                )
            except driver.ProgramFailed as failure:
                print(f"left out: {failure}", file=sys.stderr)
                del results[name]
                continue
            found = a_sentence(few, many, counts[name], options.cores)
            results[name].rounds.append(found)
    return results


def report(options, results, counts):
    """Print and write the results."""
    written = driver.Report(options)
    written.environments(results)
    columns = {
        "sentences/s": lambda found: f"{1 / found.median('wall'):,.0f}",
        "utilisation": lambda found: f"{found.median('utilisation'):.0%}",
        "start s": lambda found: f"{found.median('start'):.1f}",
        "whole s": lambda found: f"{found.median('whole'):.1f}",
        "lines": lambda found: f"{counts[found.program.name]:,}",
        "characters": lambda found: f"{found.median('characters'):.0f}",
    }
    group = f"{options.config}, {options.cores} cores"
    written.times(group, results, columns, unit="a sentence")
    written.write(f"Files, {group}")


if __name__ == "__main__":
    main()
