"""The systems of a plan, each with the settings of those before it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config_values import (
    config_to_dict,
    leaf_values,
    with_values,
)
from luong_keras.data.text_files import several
from luong_keras.near_names import did_you_mean
from reproduction.plan_files import RowEntry

#: What stands for that of the training texts as teachers translate them.
TAUGHT = "{taught}"
# Defaults that were others when texts were first named by settings that are
# not the default. A name stays as these move: finished rows have it.
_FIRST_DEFAULTS = {
    "data.source_language": "en",
    "data.target_language": "de",
    "decoding.min_length_ratio": 0.5,
}


@dataclass(frozen=True)
class Row:
    """A system to train and to score.

    Attributes:
        name: its own.
        config: its settings, with the folder of the text not yet in them.
        models: how many decide together.
        after: the row that it was made of.
        changes: what it changes there.
        teacher: the row whose models translate its training text.
    """

    name: str
    config: RunConfig
    models: int
    after: str | None
    changes: Mapping[str, Any]
    teacher: str | None = None

    def with_seed(self, seed: int) -> RunConfig:
        """The settings with the seed of one model."""
        return with_values(self.config, {"training.seed": seed})

    def seeds_of(self, wanted: int) -> list[tuple[int, ...]]:
        """The seeds of its models, for every time that it is tried."""
        if self.models > 1:
            return [tuple(range(1, self.models + 1))]
        return [(seed,) for seed in range(1, wanted + 1)]


def resolved(
    entries: Mapping[str, RowEntry], base: RunConfig
) -> dict[str, Row]:
    """The rows with all of their settings, those below others first."""
    rows: dict[str, Row] = {}

    def resolve(name: str, above: tuple[str, ...]) -> Row:
        if name in rows:
            return rows[name]
        _check_name(name)
        entry = entries.get(name)
        if entry is None:
            raise ValueError(
                f"The row {above[-1]!r} comes after {name!r}, which there is "
                f"not.{did_you_mean(name, entries)}"
            )
        if name in above:
            raise ValueError(
                f"The row {name!r} comes after itself: "
                f"{' after '.join((*above, name))}."
            )
        config, teacher = base, entry.teacher
        if entry.after is not None:
            after = resolve(entry.after, (*above, name))
            config, teacher = after.config, teacher or after.teacher
        if entry.models < 1:
            raise ValueError(
                f"The row {name!r}: Expected: models of at least 1. Received: "
                f"{entry.models}."
            )
        try:
            config = with_values(config, entry.settings)
            check_seed(config, base)
        except ValueError as error:
            raise ValueError(f"The row {name!r}: {error}") from None
        changes = dict(entry.settings)
        if entry.turned:
            source, target = config.data.languages
            turned = {
                "data.source_language": target,
                "data.target_language": source,
            }
            config, changes = with_values(config, turned), turned | changes
        if entry.models > 1:
            changes["models"] = entry.models
        if entry.teacher is not None:
            told = resolve(entry.teacher, (*above, name))
            config = _taught(name, config, told)
            changes["teacher"] = entry.teacher
        rows[name] = Row(
            name, config, entry.models, entry.after, changes, teacher
        )
        return rows[name]

    for name in entries:
        resolve(name, ())
    return rows


def check_seed(config: RunConfig, before: RunConfig) -> None:
    """Refuses a seed among the settings: every trial has its own."""
    if config.training.seed != before.training.seed:
        raise ValueError(
            "training.seed is no setting of a row: its trials have the seeds "
            "1, 2 and so on. Expected: --seeds N, how many. Received: "
            f"training.seed={config.training.seed}."
        )


def taught_text(teacher: Row) -> str:
    """The name of the file of a training text that was translated.

    Other settings or models are another text, and so another name.
    """
    default = leaf_values(config_to_dict(RunConfig())) | _FIRST_DEFAULTS
    own = leaf_values(config_to_dict(teacher.config))
    changed = {name: v for name, v in own.items() if v != default[name]}
    made_by = json.dumps([teacher.models, changed], sort_keys=True)
    digest = hashlib.sha256(made_by.encode())
    return f"{teacher.name}-{digest.hexdigest()[:8]}.tsv"


def _check_name(name: str) -> None:
    """A row's name is that of its file."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(
            "Expected: rows named by letters, digits, _, - and . alone. "
            f"Received: {name!r}."
        )


def _taught(name: str, config: RunConfig, teacher: Row) -> RunConfig:
    """The settings with the training text once more, as it was translated."""
    data = config.data
    if data.train is None or teacher.teacher is not None:
        raise ValueError(
            f"The row {name!r} has the teacher {teacher.name!r}. Expected: a "
            "training text in files, and a teacher without one of its own. "
            f"Received: data.train={data.train!r}, and {teacher.name!r} with "
            f"the teacher {teacher.teacher!r}."
        )
    told = teacher.config.data
    for of, own, other in (
        ("train", data.train, told.train),
        ("source_language", data.languages[0], told.languages[0]),
        ("target_language", data.languages[1], told.languages[1]),
        ("lowercase", data.lowercase, told.lowercase),
    ):
        if own != other:
            raise ValueError(
                f"The row {name!r} and its teacher {teacher.name!r} read "
                f"other text. Expected: data.{of}={own!r}. Received: {other!r}."
            )
    sources = (*several(data.train), f"{TAUGHT}/{taught_text(teacher)}")
    return with_values(config, {"data.train": sources})
