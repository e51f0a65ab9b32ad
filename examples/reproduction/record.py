"""A finished row: a small JSON file of all that a page says of it."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config_values import config_to_dict, leaf_values
from luong_keras.files.atomic_file import write_text
from luong_keras.files.json_file import read_json

_FORM = 1
# What no score depends on, or only as rounding does.
_OF_NO_ACCOUNT = (
    "data.processes",
    "data.most_skipped",
    "training.snapshot_steps",
    "training.samples",
    "training.histograms",
    "training.keep",
    "training.on_nonfinite",
    "training.most_skipped",
    "training.seed",  # stands beside the settings
)

# Settings on which the hash of the training text depends.
_OF_TRAINING_TEXT = re.compile(
    r"data\.(dataset|(source|target)_language|train(_size)?|columns|lowercase"
    r"|normalize_punctuation|tokenize|on_bad_line|filters\..*)"
)
# Settings on which the references depend, beside the test text.
_OF_REFERENCES = (
    "data.target_language",
    "data.lowercase",
    "data.normalize_punctuation",
    "data.tokenize",
)


@dataclass(frozen=True)
class Record:
    """One row, tried once.

    Attributes:
        row: its name.
        seeds: of its models; several of an ensemble.
        settings: all of them, by their full names; the precision is that of
            the training, where the plan has `auto`.
        scores: of the test text: the score and, where there is one,
            sacreBLEU's signature.
        sentences: of each test sentence the numbers that scores are made of
            (`measures`), and `source_lengths`, its words.
        curves: of the validation text, a number an epoch.
        samples: translations of the plan's own sentences, with alignments.
        text: hashes of the test text (`test`), of the training text
            (`corpus`, which older rows have not) and of the order of its
            batches (`training`).
        made: when and where: seconds, machine, version, revision.
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
        """What its weights come of, but for the seeds.

        Rows that differ in their search or their test text alone have the
        same, and the same weights where their seeds are the same.
        """
        own = {n: v for n, v in self._all().items() if not _of_search(n)}
        text = self.text.get("corpus")
        return len(self.seeds), text, json.dumps(own, sort_keys=True)

    @property
    def training_text(self) -> str:
        """The settings that decide the training text: rows share its hash."""
        own = {
            name: value
            for name, value in self._all().items()
            if _OF_TRAINING_TEXT.fullmatch(name)
        }
        return json.dumps(own, sort_keys=True)

    @property
    def references(self) -> tuple:
        """Key of the references: equal for rows that are comparable."""
        values = self._all()
        lengths = self.sentences.get("reference_length", ())
        settings = [values[name] for name in _OF_REFERENCES]
        return self.text["test"], tuple(lengths), *settings

    def _all(self) -> dict[str, Any]:
        """The settings, with the defaults of those that came later."""
        return default_settings() | dict(self.settings)

    def differences(self, config: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Settings that are not those of `config`: the old and the new value.

        A setting that came later has its default in older records; where
        `config` has the precision `auto`, any is right.
        """
        default = default_settings()
        wanted = comparable_settings(config)
        return {
            name: (old, value)
            for name, value in wanted.items()
            if (old := self.settings.get(name, default[name])) != value
            and (name, value) != ("model.precision", "auto")
        }


def comparable_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that decide a row, by full names, as JSON has them."""
    leaves = json.loads(json.dumps(leaf_values(config_to_dict(config))))
    return {n: value for n, value in leaves.items() if n not in _OF_NO_ACCOUNT}


@functools.cache
def default_settings() -> dict[str, Any]:
    """Default settings of a row."""
    return comparable_settings(RunConfig())


def _of_search(name: str) -> bool:
    return name.startswith(("decoding.", "data.test"))


def record_path(folder: Path, row: str, seeds: Sequence[int]) -> Path:
    """The file of a row.

    Example:
        >>> record_path(Path("rows"), "feed", [2]).name
        'feed-2.json'
    """
    first, *others = seeds
    name = f"{row}-{first}" + (f"to{others[-1]}" if others else "")
    return folder / f"{name}.json"


def write_record(folder: Path, record: Record) -> Path:
    """Writes a row whole, or not at all."""
    path = record_path(folder, record.row, record.seeds)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, _json({"form": _FORM, **dataclasses.asdict(record)}))
    return path


def read_record(path: Path) -> Record:
    """Reads a row.

    Raises:
        FileNotFoundError: where there is none.
        ValueError: for a file that is damaged or of another form.
    """
    advice = "Remove the file: the row is made again."
    found = read_json(path, "a finished row", advice)
    names = {part.name for part in dataclasses.fields(Record)}
    if found.pop("form", None) != _FORM or set(found) != names:
        raise ValueError(
            f"{path} is no finished row of this version. Expected: form "
            f"{_FORM} with {', '.join(sorted(names))}. {advice}"
        )
    return Record(**(found | {"seeds": tuple(found["seeds"])}))


def read_records(folder: Path) -> dict[Path, Record]:
    """All rows of a folder, but for what is being written there just now."""
    return {p: read_record(p) for p in sorted(folder.glob("[!.]*.json"))}


def _json(values: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of a section, so that columns are one."""
    parts = []
    for name, value in values.items():
        text = _line(value)
        if isinstance(value, Mapping):
            lines = [f"{_line(key)}: {_line(x)}" for key, x in value.items()]
            text = "{\n    " + ",\n    ".join(lines) + "\n  }"
        parts.append(f"  {_line(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
