"""Records: small JSON files with the facts of one trial for a page."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras import RunConfig, config_to_dict
from luong_keras.config.values import leaf_values
from luong_keras.files.atomic_file import read_json, write_text

_FORMAT_VERSION = 1
_DAMAGED = "Remove the file: the next call makes it again."
# Settings that change scores only by rounding, and the seed, which is stored
# separately.
_WITHOUT_EFFECT = (
    "data.max_skipped",
    "data.processes",
    "training.keep",
    "training.samples",
    "training.seed",
    "training.snapshot_steps",
)
_OF_REFERENCES = (
    "data.target_language",
    "data.lowercase",
    "data.normalize_punctuation",
    "data.tokenize",
    "data.pretokenized",
)


@dataclass(frozen=True)
class Record:
    """One trial of a row.

    `settings` has the precision of the training run if the plan has `auto`.
    `sentences` has the columns of `scores.MEASURES`, `curves` one number per
    epoch, `samples` translations of the plan's sentences, and `text` hashes of
    the test text and the training text (`corpus`, which older records lack).
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
    def training_key(self) -> tuple:
        """Key that is equal for rows with equal weights at equal seeds."""
        settings = {
            name: value
            for name, value in self._all_settings().items()
            if not name.startswith(("decoding.", "data.test"))
        }
        text = self.text.get("corpus")
        return len(self.seeds), text, json.dumps(settings, sort_keys=True)

    @property
    def reference_key(self) -> tuple:
        """Key that is equal for rows with comparable scores."""
        settings = self._all_settings()
        lengths = self.sentences.get("reference_length", ())
        reference_settings = [settings[name] for name in _OF_REFERENCES]
        return self.text["test"], tuple(lengths), *reference_settings

    def _all_settings(self) -> dict[str, Any]:
        """Return the settings, with defaults for those older records lack."""
        return default_settings() | dict(self.settings)

    def differences(self, config: RunConfig) -> list[str]:
        """List settings other than in `config`; `auto` fits any precision."""
        settings = self._all_settings()
        return [
            name
            for name, value in comparable_settings(config).items()
            if settings[name] != value
            and (name, value) != ("model.precision", "auto")
        ]


def comparable_settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings that affect scores, by full name, as in JSON."""
    leaves = json.loads(json.dumps(leaf_values(config_to_dict(config))))
    return {n: v for n, v in leaves.items() if n not in _WITHOUT_EFFECT}


@functools.cache
def default_settings() -> dict[str, Any]:
    """Return the default of each setting that affects scores."""
    return comparable_settings(RunConfig())


def write_record(path: Path, record: Record) -> None:
    """Write a record atomically, with one line per column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    values = {"form": _FORMAT_VERSION, **dataclasses.asdict(record)}
    for name, value in values.items():
        text = _json(value)
        if isinstance(value, dict):
            entries = [f"{_json(k)}: {_json(v)}" for k, v in value.items()]
            text = "{\n" + ",\n".join(entries) + "\n}"
        lines.append(f"{_json(name)}: {text}")
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_record(path: Path) -> Record:
    """Read a record, without settings that no longer exist.

    Raises:
        ValueError: If it is damaged or has another format version.
    """
    values = read_json(path, "a record of a row", _DAMAGED)
    names = {field.name for field in dataclasses.fields(Record)}
    if values.pop("form", None) != _FORMAT_VERSION or set(values) != names:
        raise ValueError(
            f"Expected: a record of format version {_FORMAT_VERSION} with the "
            f"fields {', '.join(sorted(names))}. Received: {path}. {_DAMAGED}"
        )
    known = default_settings()
    settings = {n: v for n, v in values["settings"].items() if n in known}
    seeds = tuple(values["seeds"])
    return Record(**(values | {"seeds": seeds, "settings": settings}))
