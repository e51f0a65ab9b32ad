"""Records: a small JSON file of all that a page says of one trial."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras import RunConfig, config_to_dict
from luong_keras.config_values import leaf_values
from luong_keras.files.atomic_file import write_text
from luong_keras.files.json_file import read_json
from reproduction.plan import trial_name

_FORM = 1
_DAMAGED = "Remove the file: the next call makes it again."
# Settings that no score depends on, but for rounding; the seed stands apart.
_WITHOUT_EFFECT = (
    *("data.processes", "data.most_skipped", "training.snapshot_steps"),
    *("training.samples", "training.histograms", "training.keep"),
    *("training.on_nonfinite", "training.most_skipped", "training.seed"),
)
_OF_REFERENCES = (
    *("data.target_language", "data.lowercase"),
    *("data.normalize_punctuation", "data.tokenize"),
)


@dataclass(frozen=True)
class Record:
    """One trial of a row.

    Attributes:
        row: its name.
        seeds: of its models; several of an ensemble.
        settings: by full names; with the precision of the training where the
            plan has `auto`.
        scores: of the test text, with sacreBLEU's signatures.
        sentences: columns of sufficient statistics (`scores`), a number for
            each test sentence, and `source_lengths`.
        curves: of the validation text, a number an epoch.
        samples: translations of the plan's sentences, with alignments.
        text: hashes of the test text (`test`), of the training text
            (`corpus`, which older records lack) and of its batches.
        made: seconds, machine, version, revision.
    """

    row: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    scores: Mapping[str, Mapping[str, Any]]
    sentences: Mapping[str, Sequence[float]]
    curves: Mapping[str, Sequence[float | None]]
    samples: Sequence[Mapping[str, Any]]
    text: Mapping[str, Any]
    made: Mapping[str, Any]

    @property
    def trained(self) -> tuple:
        """Equal for rows with the same weights where their seeds are equal."""
        decided = {
            name: value
            for name, value in self._all_settings().items()
            if not name.startswith(("decoding.", "data.test"))
        }
        text = self.text.get("corpus")
        return len(self.seeds), text, json.dumps(decided, sort_keys=True)

    @property
    def references(self) -> tuple:
        """Equal for rows whose scores are comparable."""
        settings = self._all_settings()
        lengths = self.sentences.get("reference_length", ())
        own = [settings[name] for name in _OF_REFERENCES]
        return self.text["test"], tuple(lengths), *own

    def _all_settings(self) -> dict[str, Any]:
        """The settings, with the default of those that older records lack."""
        return default_settings() | dict(self.settings)

    def differences(self, config: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Settings other than those of `config`: the old and the new value.

        Any precision equals `auto`.
        """
        old = self._all_settings()
        return {
            name: (old[name], value)
            for name, value in comparable_settings(config).items()
            if old[name] != value and (name, value) != ("model.precision", "auto")
        }


def comparable_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that scores depend on, by full names, as JSON has them."""
    leaves = json.loads(json.dumps(leaf_values(config_to_dict(config))))
    return {n: v for n, v in leaves.items() if n not in _WITHOUT_EFFECT}


@functools.cache
def default_settings() -> dict[str, Any]:
    """The default of each setting that scores depend on."""
    return comparable_settings(RunConfig())


def record_path(folder: Path, record: Record) -> Path:
    """The file of a record."""
    return folder / f"{trial_name(record.row, record.seeds)}.json"


def write_record(path: Path, record: Record) -> None:
    """Writes a record, atomically, with a line for each column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"form": _FORM, **dataclasses.asdict(record)}
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    write_text(path, re.sub(r'([\]}],|[{]) (?=")', r"\1\n", text) + "\n")


def read_record(path: Path) -> Record:
    """Reads a record; damage and another form raise a ValueError."""
    found = read_json(path, "a record of a row", _DAMAGED)
    names = {part.name for part in dataclasses.fields(Record)}
    if found.pop("form", None) != _FORM or set(found) != names:
        raise ValueError(
            f"Expected: a record of form {_FORM} with "
            f"{', '.join(sorted(names))}. Received: {path}. {_DAMAGED}"
        )
    return Record(**(found | {"seeds": tuple(found["seeds"])}))
