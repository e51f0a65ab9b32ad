"""Random mutation testing: small mistakes drawn from the syntax trees.

    python -m tests.mutations.drawn --seed 1 --count 60

First a module is drawn, with a probability proportional to its number of
statements, then one of its nodes that can be changed, then a change. Each
mutant is tested in a copy of the project: the tests closest to its module run
first, until one fails. The output file gets one line of JSON per mutant;
mutants that it contains already are not run again.
"""

import argparse
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.mutations.edits import Source, program
from tests.mutations.matching_tests import ImportGraph
from tests.mutations.project_copy import PACKAGE, ROOT, Outcome, run_tests

_WORDS = {
    "failed": "caught",
    "passed": "survived",
    "cut": "survived",
    "no tests": "survived",
    "timed out": "timed out",
}


class Mutant(NamedTuple):
    """Module with one mistake."""

    module: str
    line: int
    before: str
    after: str
    text: str

    def key(self) -> tuple:
        """Return the fields that identify it, without the module's text."""
        return self[:-1]


def modules(package: Path, only: str = "") -> list[str]:
    """Return the modules to draw from."""
    names = [p.relative_to(package) for p in sorted(package.rglob("*.py"))]
    return [name.as_posix() for name in names if only in name.as_posix()]


def draw(seed: int, package: Path, only: str = "") -> Iterator[Mutant]:
    """Yield random mutants, none twice; the same seed draws the same ones.

    Args:
        seed: The seed of the generator.
        package: The folder of the package.
        only: Part of the paths of the modules to draw from.

    Yields:
        Mutants that compile to another program.
    """
    generator = random.Random(seed)
    names = modules(package, only)
    sources = {
        name: Source((package / name).read_text(encoding="utf-8"))
        for name in names
    }
    weights = [sources[name].statements for name in names]
    seen, misses = set(), 0
    while any(weights) and misses < 1000:
        misses += 1
        (name,) = generator.choices(names, weights)
        source = sources[name]
        if not source.places:
            continue
        edit = generator.choice(generator.choice(source.places))
        text = source.apply(edit)
        mutant = Mutant(name, *source.difference(edit), text)
        if mutant.key() in seen:
            continue
        seen.add(mutant.key())
        if program(text) not in (None, source.program):
            misses = 0
            yield mutant


def record(mutant: Mutant, outcome: Outcome, backend: str) -> dict:
    """Return the entry of a mutant in the output file."""
    return {
        "backend": backend,
        "module": mutant.module,
        "line": mutant.line,
        "before": mutant.before,
        "after": mutant.after,
        "result": _WORDS[outcome.status],
        "all_tests": outcome.status != "cut",
        "tests": outcome.tests,
        "passed": outcome.passed,
        "seconds": outcome.seconds,
    }


def read_records(path: Path, backend: str) -> dict[tuple, dict]:
    """Read the records of a backend, by the keys of the mutants."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    names = ("module", "line", "before", "after")
    return {
        tuple(r[name] for name in names): r
        for r in found
        if r["backend"] == backend
    }


def main() -> None:
    """Run the mutants that have no record yet, then print a table."""
    options = _parser().parse_args()
    path, graph = Path(options.output), ImportGraph(ROOT, PACKAGE)
    drawn = draw(options.seed, ROOT / PACKAGE, options.only)
    mutants = list(islice(drawn, options.count))
    records = read_records(path, options.backend)
    waiting = [m for m in mutants if m.key() not in records]
    path.parent.mkdir(parents=True, exist_ok=True)

    def run(mutant):
        outcome = run_tests(
            graph.tests_of(mutant.module),
            changed={mutant.module: mutant.text},
            options=["-x"],
            backend=options.backend,
            limit=options.time_limit,
        )
        return mutant, record(mutant, outcome, options.backend)

    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(run, m) for m in waiting]):
            mutant, found = future.result()
            records[mutant.key()] = found
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
            print(_line(found), flush=True)
    _print_table([records[m.key()] for m in mutants])
    _print_red_tests([records[m.key()] for m in waiting], options.backend)


def _parser():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", default="", help="part of a module's path")
    parser.add_argument(
        "--backend", default="tensorflow", choices=("tensorflow", "jax")
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--time-limit", type=float, default=240, help="seconds a mistake"
    )
    parser.add_argument("--output", default=str(ROOT / "runs/mutations.jsonl"))
    return parser


def _line(found):
    where = f"{found['module']}:{found['line']}"
    tests = " ".join(found["tests"]) if found["result"] != "survived" else ""
    return f"{found['result']:9} {found['seconds']:6.1f} s  {where}  {tests}"


def _print_table(records):
    print()
    for result in ("caught", "timed out", "survived"):
        count = sum(found["result"] == result for found in records)
        print(f"{result:9} {count:4}")
    for found in records:
        if found["result"] == "survived":
            rest = "" if found["all_tests"] else ", cut by the time limit"
            where = f"{PACKAGE}/{found['module']}:{found['line']}"
            print(f"\n{where} ({found['passed']} tests passed{rest})")
            for sign, text in (("-", "before"), ("+", "after")):
                for line in found[text].splitlines():
                    print(sign, line)


def _print_red_tests(records, backend):
    """Print the failed tests that also fail without a mistake."""
    caught = [found for found in records if found["result"] == "caught"]
    tests = {test for found in caught for test in found["tests"]}
    tests = sorted(test for test in tests if "::" in test)
    if tests:
        outcome = run_tests(tests, backend=backend)
        for test in outcome.tests:
            print(f"\nfails without a mistake as well: {test}")


if __name__ == "__main__":
    main()
