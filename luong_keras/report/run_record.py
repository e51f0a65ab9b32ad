"""The record of a run, read from its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, leaf_values
from luong_keras.files.path_checks import no_link
from luong_keras.progress import rounded
from luong_keras.recipe.run_settings import run_config
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True)
class RunRecord:
    """A run as its folder has it.

    Attributes:
        folder: where it is.
        name: what it is called on the page.
        config: its settings.
        epochs: the logs of its epochs.
        results: the last scores of the test pairs, empty where there are none.
        sources: of the test pairs.
        references: likewise.
        translations: of the test pairs; empty before they were translated.
        sessions: the calls that trained it: when, for how long, where.
    """

    folder: Path
    name: str
    config: RunConfig
    epochs: Sequence[Mapping[str, Any]]
    results: Mapping[str, Any]
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]
    sessions: Sequence[Mapping[str, Any]]

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of both languages; `und` for one that is not known."""
        data = self.config.data
        return data.source_language or "und", data.target_language or "und"

    def epoch_values(self, name: str) -> list[tuple[int, float]]:
        """A result of the epochs that have it, by number.

        Args:
            name: of the result; that of the output may stand before it.
        """
        return [
            (line["epoch"], float(value))
            for line in self.epochs
            for key, value in line.items()
            if key == name and value is not None
        ]


def read_run(folder: str | Path, name: str | None = None) -> RunRecord:
    """Reads a run, finished or not.

    Args:
        folder: of the run.
        name: what to call it; the name of the folder when None.

    Raises:
        FileNotFoundError: where there is no run.
        ValueError: where its files do not belong together, or are links.
    """
    run = RunFolder(folder)
    config = run_config(folder, own_files=False)
    pairs = _json_lines(run.test)
    translations = _lines(run.translations)
    if translations and len(translations) != len(pairs):
        raise ValueError(
            f"Expected: as many lines in {run.translations} as in {run.test}. "
            f"Received: {len(translations)} and {len(pairs)}. Remove "
            f"{run.finished} and give the command of the training again: it "
            "translates the test pairs anew."
        )
    results = [
        line for line in _json_lines(run.results) if line.get("set") == "test"
    ]
    return RunRecord(
        run.path,
        name or run.path.resolve().name,
        config,
        JsonLinesLog(run.log).read(),
        results[-1] if results else {},
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs],
        translations,
        _json_lines(run.sessions),
    )


def settings(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Every setting with its value in each run.

    Returns:
        Rows of `name`, `values`, and whether one is `changed` from the
        default or `differs` between the runs.
    """
    default = leaf_values(config_to_dict(RunConfig()))
    found = [leaf_values(config_to_dict(run.config)) for run in runs]
    rows = []
    for name in found[0]:
        values = [leaves.get(name) for leaves in found]
        rows.append(
            {
                "name": name,
                "values": [_shown(value) for value in values],
                "changed": any(v != default.get(name) for v in values),
                "differs": any(v != values[0] for v in values),
            }
        )
    return rows


def sessions(run: RunRecord) -> dict[str, Any]:
    """Time and machine of a run."""
    seconds = sum(session["seconds"] for session in run.sessions)
    machines = []
    for session in run.sessions:
        if session["machine"] not in machines:
            machines.append(session["machine"])
    speeds = [value for _, value in run.epoch_values("tokens_per_second")]
    return {
        "epochs": len(run.epochs),
        "calls": len(run.sessions),
        "time": _duration(seconds) if run.sessions else None,
        "speed": rounded(sum(speeds) / len(speeds)) if speeds else None,
        "machines": machines,
    }


def _duration(seconds: float) -> str:
    """Hours and minutes, or minutes and seconds, of a short one seconds."""
    minutes, left = divmod(round(seconds), 60)
    hours, of_hour = divmod(minutes, 60)
    if hours:
        return f"{hours} h {of_hour} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _lines(path: Path) -> list[str]:
    if not no_link(path).exists():
        return []
    # Only this ends a line: a U+2028 may stand in a sentence.
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _json_lines(path: Path) -> list[Any]:
    found = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise ValueError(
                f"Expected: JSON in {path}, line {number}. Received: "
                f"{line[:80]!r}. Remove the line."
            ) from error
    return found
