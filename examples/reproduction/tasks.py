"""Which trainings the rows of a plan need, and which rows they give."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from luong_keras.config import RunConfig
from luong_keras.config_values import config_to_dict
from reproduction.plan import Plan
from reproduction.record import read_record, record_path
from reproduction.rows import Row

STOPPED = 3  # the status of a process that was stopped before its end
# What says which test text there is.
TEST_TEXT = ("test", "test_set", "test_subset")


@dataclass(frozen=True)
class Wanted:
    """A row with the seeds of its models."""

    row: Row
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Teacher:
    """A row that translates training text, and the runs of its models."""

    row: Row
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A text to prepare for all runs that read it.

    Attributes:
        name: that of its log.
        folder: where.
        config: of a run that reads it.
        teacher: who translates it first, if anybody.
    """

    name: str
    folder: Path
    config: RunConfig
    teacher: Teacher | None = None


@dataclass(frozen=True)
class Training:
    """One model to train, and the rows that are it alone.

    Attributes:
        name: that of its folder.
        config: its settings.
        rows: what is scored when it is trained; none where it is only a part
            of an ensemble or a teacher.
        teacher: who translates its text, and is trained before.
    """

    name: str
    config: RunConfig
    rows: tuple[Row, ...]
    teacher: Teacher | None = None


@dataclass(frozen=True)
class Ensemble:
    """Trained models that are scored together, by the names of their runs."""

    row: Row
    runs: tuple[str, ...]

    @property
    def name(self) -> str:
        """That of its log."""
        return self.row.name


@dataclass(frozen=True)
class Work:
    """What is left to do.

    Attributes:
        finished: rows that have a record already.
        outdated: what differs in the records of others, by their files.
        trainings: to run.
        ensembles: to score afterwards.
    """

    finished: tuple[Wanted, ...]
    outdated: dict[Path, str]
    trainings: tuple[Training, ...]
    ensembles: tuple[Ensemble, ...]


def work_of(plan: Plan, rows: Sequence[Row], seeds: int, records: Path) -> Work:
    """What has to be run until all these rows have a record.

    Args:
        plan: with all rows that there are.
        rows: those that are wanted.
        seeds: how often a single model is trained.
        records: the folder of finished rows.
    """
    finished, outdated = [], {}
    missing: list[Wanted] = []
    for row in rows:
        for chosen in row.seeds_of(seeds):
            path = record_path(records, row.name, chosen)
            differs = _differs(row, path)
            if differs is None:
                finished.append(Wanted(row, chosen))
                continue
            missing.append(Wanted(row, chosen))
            if differs:
                outdated[path] = differs
    trainings: dict[str, Training] = {}
    ensembles = []
    for wanted in missing:
        names = _add(plan, wanted.row, wanted.seeds, trainings)
        if wanted.row.models > 1:
            ensembles.append(Ensemble(wanted.row, names))
            continue
        for name in names:
            known = trainings[name]
            trainings[name] = dataclasses.replace(
                known, rows=(*known.rows, wanted.row)
            )
    return Work(
        tuple(finished),
        outdated,
        tuple(trainings.values()),
        tuple(ensembles),
    )


def text_key(config: RunConfig) -> str:
    """What the training text and its vocabularies are made by."""
    data = config_to_dict(config.data)
    for name in (
        *TEST_TEXT,
        *("dev", "processes", "batching", "subword_dropout"),
    ):
        del data[name]
    sizes = (
        config.model.source_vocabulary_size,
        config.model.target_vocabulary_size,
    )
    return json.dumps([data, sizes], sort_keys=True)


def _differs(row: Row, path: Path) -> str | None:
    """Why a row must be made: "" where it is new, None where it is there."""
    if not path.exists():
        return ""
    found = read_record(path).differences(row.config)
    told = [f"{name}: {old!r} → {new!r}" for name, (old, new) in found.items()]
    return ", ".join(told) or None


def _add(
    plan: Plan,
    row: Row,
    seeds: Sequence[int],
    trainings: dict[str, Training],
) -> tuple[str, ...]:
    """Adds what trains the models of a row; the names of their runs."""
    key = _training_key(row)
    # The first row of the plan that is this training chooses its best epoch,
    # so that it is the same run whatever else is asked for.
    first = next(r for r in plan.rows.values() if _training_key(r) == key)
    teacher = None
    if row.teacher is not None:
        told = plan.rows[row.teacher]
        (models,) = told.seeds_of(1)
        teacher = Teacher(told, _add(plan, told, models, trainings))
    names = tuple(f"{first.name}-{seed}" for seed in seeds)
    for name, seed in zip(names, seeds, strict=True):
        made = Training(name, first.with_seed(seed), (), teacher)
        trainings.setdefault(name, made)
    return names


def _training_key(row: Row) -> str:
    config = dataclasses.replace(row.config, decoding=RunConfig().decoding)
    values = config_to_dict(config)
    for name in TEST_TEXT:
        del values["data"][name]
    return json.dumps(values, sort_keys=True)
