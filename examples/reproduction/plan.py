"""What is to be run: rows that change each other, tables and claims.

`plans/paper.yaml` has the systems of the paper, its figures and its claims;
`plans/SCALE.yaml` the text and the sizes that they are tried with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config_values import assignment, with_values
from luong_keras.near_names import did_you_mean
from luong_keras.presets import PRESETS
from reproduction.plan_files import (
    Claim,
    Correlation,
    Line,
    OwnRows,
    PaperFile,
    Sample,
    ScaleFile,
    Table,
    read_plan_file,
)
from reproduction.rows import TAUGHT, Row, check_seed, resolved

_PLANS = Path(__file__).parent / "plans"
SCALES = ("builtin", "multi30k", "wmt14")
#: What stands for the folder of the text in the settings of a plan.
DATA = "{data}"
OWN = "own"


@dataclass(frozen=True)
class Plan:
    """All of one scale.

    Attributes:
        scale: its name.
        title: of the text.
        text: what a reader must know of it first.
        files: which files of text it needs, in words; None for those that
            need none.
        rows: by name, each after those that it changes.
        tables: by name.
        usual: the names of the tables that are run where nothing is said.
        seeds: how many times a row is tried where nothing is said.
        claims: of the paper.
        correlations: likewise.
        samples: sentences that every row translates for the page.
        paper: whether the systems of the paper are among the rows.
        command: what runs it, without the names of rows.
    """

    scale: str
    title: str
    text: str
    files: str | None
    rows: Mapping[str, Row]
    tables: Mapping[str, Table]
    usual: tuple[str, ...]
    seeds: int
    claims: tuple[Claim, ...]
    correlations: tuple[Correlation, ...]
    samples: tuple[Sample, ...]
    paper: bool
    command: tuple[str, ...]

    def chosen(self, names: Iterable[str]) -> list[Row]:
        """The rows of some tables, and rows by their own names, each once.

        Where a row has the name of a table, all of the table is meant.

        Raises:
            ValueError: for a name that the plan has not.
        """
        found: dict[str, None] = {}
        for name in names:
            if name in self.tables:
                found |= dict.fromkeys(x.row for x in self.tables[name].lines)
            elif name in self.rows:
                found[name] = None
            else:
                known = (*self.tables, *self.rows)
                raise ValueError(
                    f"Expected: tables of {', '.join(self.tables)}, or rows "
                    f"such as {next(iter(self.rows))}. Received: {name!r}."
                    f"{did_you_mean(name, known)}"
                )
        return [self.rows[name] for name in found]


def read_plan(
    scale: str,
    own_rows: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a scale.

    Args:
        scale: one of `SCALES`, or the path of a file like theirs.
        own_rows: a YAML file with `rows` of one's own, which become a table.
        settings: changes of every row, such as fewer epochs.

    Raises:
        FileNotFoundError: for a missing file.
        ValueError: for another scale, or a file that is no plan: what is
            wrong in it by its full name.

    Example:
        >>> plan = read_plan("builtin")
        >>> plan.rows["reverse"].after, plan.rows["reverse"].changes
        ('base', {'model.reverse_source': True})
    """
    if scale in SCALES:
        path = _PLANS / f"{scale}.yaml"
    elif scale.endswith((".yaml", ".yml")):
        path = Path(scale)
    else:
        raise ValueError(
            f"Expected: a scale of {', '.join(SCALES)}, or the path of a YAML "
            f"file like theirs. Received: {scale!r}."
            f"{did_you_mean(scale, SCALES)}"
        )
    file = read_plan_file(path, ScaleFile)
    if file.preset not in PRESETS:
        raise ValueError(
            f"{path}: preset: Expected: one of {', '.join(PRESETS)}. "
            f"Received: {file.preset!r}."
        )
    for name in ("seeds", "ensemble"):
        if (value := getattr(file, name)) < 1:
            raise ValueError(
                f"{path}: {name}: Expected: at least 1. Received: {value}."
            )
    paper = PaperFile()
    if file.paper:
        paper = read_plan_file(_PLANS / "paper.yaml", PaperFile)
    entries, tables = paper.rows | file.rows, paper.tables | file.own_tables
    for name, entry in paper.rows.items():
        if entry.models > 1 and name not in file.rows:
            models = dataclasses.replace(entry, models=file.ensemble)
            entries[name] = models
    if own_rows is not None:
        own = read_plan_file(Path(own_rows), OwnRows).rows
        if known := [name for name in own if name in entries]:
            raise ValueError(
                f"{own_rows} names rows that the paper's plan has: "
                f"{', '.join(known)}. Give yours other names."
            )
        entries |= own
        lines = [Line(name, name) for name in own]
        tables[OWN] = Table("Rows of one's own", lines)
    base = with_values(
        PRESETS[file.preset], paper.base | file.settings | (settings or {})
    )
    check_seed(base, PRESETS[file.preset])
    rows = resolved(entries, base)
    _check_names(rows, tables, paper)
    return Plan(
        path.stem,
        *(file.title, file.text, file.files, rows, tables),
        usual=tuple(file.tables) + ((OWN,) if own_rows is not None else ()),
        seeds=file.seeds,
        claims=tuple(paper.claims),
        correlations=tuple(paper.correlations),
        samples=tuple(file.samples),
        paper=file.paper,
        command=_command(scale, file, own_rows, settings or {}),
    )


def with_text(
    config: RunConfig,
    folder: str | Path | None,
    taught: str | Path | None = None,
) -> RunConfig:
    """The settings with the folders of the text and of taught texts in them."""

    def filled(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(filled(each) for each in value)
        if not isinstance(value, str):
            return value
        return value.replace(DATA, str(folder)).replace(TAUGHT, str(taught))

    parts = {
        f"data.{name}": new
        for name in ("train", "dev", "test")
        if (new := filled(old := getattr(config.data, name))) != old
    }
    return with_values(config, parts) if parts else config


def _check_names(
    rows: Mapping[str, Row], tables: Mapping[str, Table], paper: PaperFile
) -> None:
    named = {line.row for table in tables.values() for line in table.lines}
    named |= {name for claim in paper.claims for _, name in claim.terms}
    for name in sorted(named - set(rows)):
        raise ValueError(f"A plan names a row that it has not: {name!r}.")
    for told in paper.correlations:
        if told.table not in tables:
            raise ValueError(f"A plan names no table of its: {told.table!r}.")


def _command(
    scale: str,
    file: ScaleFile,
    own_rows: str | Path | None,
    settings: Mapping[str, Any],
) -> tuple[str, ...]:
    """The words of the command line that make this plan."""
    command = ["luong-keras", "reproduce", "--scale", scale]
    if file.files is not None:
        command += ["--files", "FOLDER"]
    if own_rows is not None:
        command += ["--rows", str(own_rows)]
    if settings:
        command += ["--set", *map(assignment, settings, settings.values())]
    return tuple(command)
