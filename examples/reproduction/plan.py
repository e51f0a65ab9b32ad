"""Plans: systems that change other systems, tables of systems, and claims.

A plan is a YAML file in `plans/` or elsewhere, and may inherit another plan.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from luong_keras import PRESETS, RunConfig, config_from_dict, config_to_dict
from luong_keras.config.values import with_values
from luong_keras.config.yaml_files import read_yaml
from luong_keras.suggestions import did_you_mean

_PLANS = Path(__file__).parent / "plans"
# Placeholders for folders in the settings of a plan.
DATA, DISTILLED = "{data}", "{distilled}"
Score = Literal["bleu", "perplexity", "aer"]


class _Strict:
    __pydantic_config__: Any = {"extra": "forbid"}


@dataclass(frozen=True)
class RowEntry(_Strict):
    """A row in a plan file: a row above it, and the settings that change.

    If `models` is above 1, the row is an ensemble of the seeds 1, 2 and so on.
    """

    after: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    models: int = 1


@dataclass(frozen=True)
class Line(_Strict):
    """A line of a table: a row, and its scores in the paper."""

    row: str
    name: str
    perplexity: float | None = None
    bleu: float | None = None
    aer: float | None = None


@dataclass(frozen=True)
class Table(_Strict):
    """A table: its lines, its section of the paper and the scores' source."""

    title: str
    lines: list[Line]
    section: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Claim(_Strict):
    """A claim of the paper: a signed sum of scores is above zero.

    `positive` is a sum of rows, such as `reverse - base`. `long - all` is the
    sum over the long sentences minus the sum over all sentences.
    """

    claim: str
    positive: str
    section: str
    of: Score = "bleu"
    over: Literal["all", "long", "long - all"] = "all"

    @property
    def terms(self) -> list[tuple[int, str]]:
        """Rows of `positive` with their signs, 1 or -1."""
        first, *rest = self.positive.split()
        signed = zip(rest[::2], rest[1::2], strict=True)
        return [
            (1, first),
            *((-1 if x == "-" else 1, row) for x, row in signed),
        ]


@dataclass(frozen=True)
class Correlation(_Strict):
    """A claimed correlation of two scores over a table.

    `sign` is positive or negative; 0 claims no correlation.
    """

    claim: str
    section: str
    of: tuple[Score, Score]
    sign: int
    table: str


@dataclass(frozen=True)
class PlanFile(_Strict):
    """Contents of a plan file.

    `run` lists the tables and rows to train by default. `files` describes the
    text files that the plan needs. `samples` are sentences (`source`,
    `reference`) that every row translates for the page.
    """

    title: str = ""
    text: str = ""
    preset: str = ""
    run: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    files: str | None = None
    seeds: int = 1
    samples: list[dict[str, str]] = field(default_factory=list)
    rows: dict[str, RowEntry] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    correlations: list[Correlation] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """A system to train and to score, with all its settings."""

    name: str
    config: RunConfig
    models: int
    after: str | None
    changes: Mapping[str, Any]

    def trials(self, seeds: int) -> list[str]:
        """Return the names of the trials: one per seed, or the ensemble."""
        if self.models > 1:
            return [trial_name(self.name, range(1, self.models + 1))]
        return [trial_name(self.name, [seed + 1]) for seed in range(seeds)]

    @property
    def training(self) -> dict[str, Any]:
        """Settings that determine the weights, except the seed."""
        config = dataclasses.replace(self.config, decoding=RunConfig().decoding)
        values = config_to_dict(config)
        del values["data"]["test"]
        return values


@dataclass(frozen=True)
class Plan:
    """A plan with resolved rows."""

    name: str
    file: PlanFile
    rows: Mapping[str, Row]

    def select_rows(self, names: Iterable[str] = ()) -> list[Row]:
        """Return the rows of these tables and rows, by default of `run`."""
        rows: dict[str, Row] = {}
        for name in tuple(names) or self.file.run:
            table = self.file.tables.get(name)
            lines = [line.row for line in table.lines] if table else [name]
            if lines[0] not in self.rows:
                near = did_you_mean(name, (*self.file.tables, *self.rows))
                raise ValueError(
                    "Expected: tables or rows of the plan. Received: "
                    f"{name!r}.{near}"
                )
            rows |= {row: self.rows[row] for row in lines}
        return list(rows.values())

    def trial(self, name: str) -> tuple[Row, tuple[int, ...]]:
        """Return the row and the seeds of a trial, such as `feed-2`."""
        row, _, seeds = name.rpartition("-")
        first, _, last = seeds.partition("to")
        return self.rows[row], tuple(range(int(first), int(last or first) + 1))

    def runs(self, trial: str) -> list[str]:
        """Return the names of the training runs of a trial.

        Rows that differ only in search or test text share a run: the run of
        the first such row in the plan, whose search chooses the best epoch.
        """
        row, seeds = self.trial(trial)
        first = next(
            other
            for other in self.rows.values()
            if other.training == row.training
        )
        return [trial_name(first.name, [seed]) for seed in seeds]

    def distilled(self, run: str) -> list[str]:
        """Return the files of distilled text that a run reads."""
        row, _ = self.trial(run)
        return re.findall(rf"{DISTILLED}/([^']+)", str(row.config.data.train))


def trial_name(row: str, seeds: Sequence[int]) -> str:
    """Return the name of a trial, such as `feed-2` or `ensemble-1to4`."""
    first, *rest = seeds
    return f"{row}-{first}" + (f"to{rest[-1]}" if rest else "")


def read_plan(name: str | Path) -> Plan:
    """Read a plan by its name in `plans/` or by the path of its file.

    Example:
        >>> row = read_plan("builtin").rows["reverse"]
        >>> row.after, row.changes
        ('base', {'model.reverse_source': 'true'})
    """
    try:
        file = config_from_dict(_read_values(str(name)), PlanFile)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if file.preset not in PRESETS or file.seeds < 1:
        raise ValueError(
            f"{name}: Expected: a preset, one of {', '.join(PRESETS)}, and "
            "seeds of at least 1. Received: "
            f"preset={file.preset!r}, seeds={file.seeds}."
        )
    base = with_values(PRESETS[file.preset], file.settings)
    rows: dict[str, Row] = {}
    for row, entry in file.rows.items():
        try:
            rows[row] = _resolve_row(row, entry, base, rows)
        except ValueError as error:
            raise ValueError(f"{name}: rows.{row}: {error}") from None
    for title, table in file.tables.items():
        if not table.lines:
            raise ValueError(
                f"{name}: tables.{title}: Expected: at least one line. "
                "Received: none."
            )
    for claim in file.claims:
        words = claim.positive.split()
        if len(words) % 2 == 0 or not set(words[1::2]) <= {"+", "-"}:
            raise ValueError(
                f"{name}: Expected: a claim about rows with + or - between "
                f"them. Received: positive={claim.positive!r}."
            )
    names = {line.row for table in file.tables.values() for line in table.lines}
    names |= {row for claim in file.claims for _, row in claim.terms}
    unknown = names - set(rows)
    unknown |= {item.table for item in file.correlations} - set(file.tables)
    if unknown:
        raise ValueError(
            f"{name} names what it does not have: {', '.join(sorted(unknown))}."
        )
    return Plan(Path(name).stem, file, rows)


def with_folders(
    config: RunConfig, data: str | Path | None, distilled: str | Path
) -> RunConfig:
    """Replace `{data}` and `{distilled}` in the settings by folders."""
    text = json.dumps(config_to_dict(config))
    for placeholder, folder in ((DATA, data), (DISTILLED, distilled)):
        text = text.replace(placeholder, json.dumps(str(folder))[1:-1])
    return config_from_dict(json.loads(text))


def _read_values(name: str) -> dict[str, Any]:
    """Read a plan file, merged over the plan that it inherits."""
    plans = {path.stem: path for path in _PLANS.glob("*.yaml")}
    path = plans.get(name, Path(name))
    if not path.suffix:
        raise ValueError(
            f"Expected: a plan of {', '.join(sorted(plans))}, or the path of a "
            f"YAML file. Received: {name!r}.{did_you_mean(name, plans)}"
        )
    values = read_yaml(path)
    if "inherits" not in values:
        return values
    parent = _read_values(values.pop("inherits"))
    merged = parent | {"run": list(values.get("rows", ()))} | values
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(parent.get(key), dict):
            merged[key] = parent[key] | value
    return merged


def _resolve_row(
    name: str, entry: RowEntry, base: RunConfig, above: Mapping[str, Row]
) -> Row:
    words = re.fullmatch(r"\w[\w.-]*", name)
    if not words or entry.models < 1 or "training.seed" in entry.settings:
        raise ValueError(
            "Expected: a name of letters, digits, _, - and .; 1 or more "
            "models; no training.seed (but `--config seeds=3`, how many). "
            f"Received: {name!r}, models={entry.models}, {entry.settings}."
        )
    if entry.after is not None:
        if entry.after not in above:
            raise ValueError(
                "Expected: after a row that stands above. Received: "
                f"{entry.after!r}.{did_you_mean(entry.after, above)}"
            )
        base = above[entry.after].config
    changes = dict(entry.settings)
    config = with_values(base, changes)
    if entry.models > 1:
        changes["models"] = entry.models
    return Row(name, config, entry.models, entry.after, changes)
