"""How far the trainings of a plan are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reproduction.tasks import Ensemble, Text, Training, Work
from luong_keras.short_numbers import clock
from luong_keras.training.json_lines_log import JsonLinesLog
from luong_keras.training.run_folder import RunFolder


class Progress:
    """How far the work is."""

    def __init__(self, folder: Path, work: Work, start: float) -> None:
        self.folder = folder
        self.start = start
        self.running: dict[str, Training | Ensemble | Text] = {}
        self.ended = 0
        self.parts = len(work.trainings) + len(work.ensembles)
        self.trainings = work.trainings
        # What earlier calls have trained is no measure of this one's speed.
        self.before = self._epochs()

    def begin(self, task: Any) -> None:
        """Notes that a part runs."""
        self.running[task.name] = task

    def end(self, task: Any) -> None:
        """Notes that it does not any more."""
        self.running.pop(task.name, None)
        self.ended += not isinstance(task, Text)

    def told(self) -> str:
        """How much is done, and how long the rest takes."""
        elapsed = time.monotonic() - self.start
        told = f"{self.ended} of {self.parts}, {clock(elapsed)}"
        done = self._epochs() - self.before
        total = sum(t.config.training.epochs for t in self.trainings)
        left = total - self.before - done
        if done and left > 0:
            told += f", {clock(left * elapsed / done)} left"
        return told

    def line(self) -> str:
        """The line that is redrawn."""
        parts = [self.told()]
        for name, task in list(self.running.items()):
            if isinstance(task, Training):
                log = RunFolder(self.folder / name).log
                epochs = len(JsonLinesLog(log).read())
                of = task.config.training.epochs
                parts.append(f"{name} epoch {min(epochs + 1, of)} of {of}")
            else:
                parts.append(name if isinstance(task, Ensemble) else "text")
        return "; ".join(parts)

    def _epochs(self) -> int:
        return sum(
            min(
                len(JsonLinesLog(RunFolder(self.folder / t.name).log).read()),
                t.config.training.epochs,
            )
            for t in self.trainings
        )
