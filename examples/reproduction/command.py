"""`luong-keras reproduce`: the paper's tables and claims, run again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, UseAppendAction, arg

from luong_keras.cli.parsing import Own, parse_arguments, spread_assignments
from luong_keras.config_values import parse_assignments


@dataclass(frozen=True)
class Reproduce:
    """Runs the systems of Luong, Pham and Manning (2015) and tells how they do.

    Rows run side by side, and each one that is finished is a small JSON file:
    the same command goes on where it was stopped, and leaves out rows that
    have such a file. At the end, and with --page at any time, a page of HTML
    has the tables with the paper's figures beside them, curves, BLEU by
    length, and which of the paper's claims hold on this text.
    """

    # builtin (minutes to an hour on two cores), multi30k, wmt14, or a YAML
    # file of your own like theirs
    scale: Annotated[str, arg(help_behavior_hint="(default: builtin)")] = (
        "builtin"
    )
    # tables to run, such as table1 table4, and single rows, such as local-p;
    # default: the tables that the scale names. `own` are the rows of --rows
    only: Own[tuple[str, ...]] = ()
    # run all tables
    all: FlagCreatePairsOff[bool] = False
    # how often each single model is trained; default: what the scale says
    seeds: Own[int | None] = None
    # processes at a time, which share the cores
    jobs: int = 1
    # a YAML file of rows of your own, as docs/reproduction.md shows
    rows: Own[Path | None] = None
    # the folder of the text, for the scales that need one
    files: Own[Path | None] = None
    # where finished rows and the page are; default: runs/reproduction/SCALE
    output: Own[Path | None] = None
    # where the trainings are, with their weights; default: OUTPUT/runs
    runs: Own[Path | None] = None
    # any setting of every row, such as training.epochs=1; several, and more
    # than once
    settings: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(name="set", metavar="KEY=VALUE …", help_behavior_hint=""),
    ] = ()
    # say what would be run, and end
    list: FlagCreatePairsOff[bool] = False
    # run nothing, write the page of what is finished
    page: FlagCreatePairsOff[bool] = False


def parse(argv: Sequence[str]) -> Reproduce:
    """What the command line asks for."""
    return parse_arguments(
        Reproduce, "luong-keras reproduce", spread_assignments(argv)
    )


def run(arguments: Reproduce) -> int:
    """Runs what is left and writes the page; 1 where a row has failed."""
    for name in ("seeds", "jobs"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be at least 1. Received: {value}.")
    from luong_keras.report.environment import environment
    from reproduction.plan import read_plan
    from reproduction.tasks import work_of

    plan = read_plan(
        arguments.scale, arguments.rows, parse_assignments(arguments.settings)
    )
    names = list(plan.tables) if arguments.all else arguments.only
    rows = plan.chosen(names or plan.usual)
    output = arguments.output or Path("runs", "reproduction", plan.scale)
    records = output / "rows"
    work = work_of(plan, rows, arguments.seeds or plan.seeds, records)
    _tell(work)
    if arguments.list:
        return 0
    environment()  # without a package the page would fail, hours from now
    status = 0
    if not arguments.page and (work.trainings or work.ensembles):
        _check_files(plan, arguments.files)
        status = _run(plan, work, arguments, output, records)
    from reproduction.page import write_pages

    paths = write_pages(plan, records, output)
    if paths:
        _tell_claims(paths[-1])
    elif arguments.page:
        raise FileNotFoundError(
            f"--page: Expected: finished rows of {plan.scale} in {records}, "
            "a folder of --output. Received: none."
        )
    for path in paths:
        print(path)
    return status


def _tell(work) -> None:
    for path, differs in work.outdated.items():
        print(f"{path} has other settings, and is made again: {differs}")
    print(
        f"{len(work.finished)} rows are finished; to run: "
        f"{len(work.trainings)} trainings, {len(work.ensembles)} ensembles"
    )
    for training in work.trainings:
        rows = ", ".join(row.name for row in training.rows) or "an ensemble"
        print(f"  {training.name}: for {rows}")
    for ensemble in work.ensembles:
        print(f"  {ensemble.name}: of {', '.join(ensemble.runs)}")


def _tell_claims(summary: Path) -> None:
    claims = json.loads(summary.read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        if claim["value"] is not None:
            print(f"{claim['verdict']:13}  {claim['claim']} {claim['value']}")


def _check_files(plan, files: Path | None) -> None:
    if plan.files is None:
        return
    if files is None:
        raise ValueError(
            f"The scale {plan.scale} needs text. Expected: --files FOLDER, "
            f"with {plan.files}. Received: none."
        )
    if not files.is_dir():
        raise FileNotFoundError(
            f"Expected: --files FOLDER, with {plan.files}. Received: {files}, "
            "which is no folder."
        )


def _run(plan, work, arguments, output: Path, records: Path) -> int:
    from reproduction.runs import Runs

    folder = (arguments.runs or output / "runs").absolute()
    files = arguments.files
    runs = Runs(
        plan,
        folder,
        records.absolute(),
        None if files is None else files.absolute(),
        arguments.jobs,
    )
    failed = runs.run(work)
    for failure in failed:
        print(f"{failure.name}: {failure.why} ({failure.log})")
    return 1 if failed else 0
