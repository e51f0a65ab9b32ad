"""Runs what is left of a plan, several processes side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config_values import config_to_dict
from luong_keras.files.folder_lock import locked
from luong_keras.progress import live_line, terminal
from reproduction.begun_runs import set_aside
from reproduction.plan import Plan, with_text
from reproduction.processes import Failure, Processes
from reproduction.progress import Progress
from reproduction.rows import Row, taught_text
from reproduction.tasks import (
    Teacher,
    Text,
    Training,
    Work,
    text_key,
)
from luong_keras.training.run_folder import RunFolder


class Runs:
    """What is left of a plan.

    Args:
        plan: what is to be run.
        folder: of the runs, with their weights.
        records: of the finished rows.
        files: the folder of the text, for plans that need one.
        jobs: how many processes at a time.
        say: is told of everything that ends.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        records: Path,
        files: Path | None = None,
        jobs: int = 1,
        say: Callable[[str], None] = print,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.records = records
        self.files = files
        self.jobs = jobs
        self.say = say
        self._processes = Processes(folder, jobs)

    def run(self, work: Work) -> list[Failure]:
        """Does the work; what fails does not keep the rest from it.

        Ctrl-C and SIGTERM stop all trainings with a snapshot each; the same
        call goes on.

        Returns:
            What has failed.

        Raises:
            FolderInUseError: where another process works in the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder), self._processes.stopped_by_signals():
            progress = Progress(self.folder, work, time.monotonic())
            with self._shown(progress):
                self._set_aside(work.trainings)
                alone = [t for t in work.trainings if t.teacher is None]
                taught = [t for t in work.trainings if t.teacher is not None]
                failed: list[Failure] = []
                for trainings in (alone, taught):
                    runs = {t.name: _runs_of(t.teacher) for t in trainings}
                    ready = self._ready(trainings, runs, failed)
                    ready = self._read(ready, progress, failed)
                    failed += self._side_by_side(ready, progress)
                runs = {e.name: e.runs for e in work.ensembles}
                ready = self._ready(work.ensembles, runs, failed)
                failed += self._side_by_side(ready, progress)
        return failed

    def _ready(
        self,
        tasks: Sequence[Any],
        runs: Mapping[str, Sequence[str]],
        failed: list[Failure],
    ) -> list[Any]:
        """Those whose runs have come to an end; the others have failed."""
        bad, ready = {failure.name for failure in failed}, []
        for task in tasks:
            lost = sorted(bad & set(runs[task.name]))
            if not lost:
                ready.append(task)
                continue
            why = f"needs {', '.join(lost)}, which did not end"
            log = self.folder / f"{lost[0]}.log"
            failed.append(Failure(task.name, why, log))
        return ready

    def _set_aside(self, trainings: Sequence[Training]) -> None:
        """Makes room for runs that have other settings than were begun."""
        taught = self.folder / "taught"
        for training in trainings:
            config = with_text(training.config, self.files, taught)
            told = set_aside(self.folder / training.name, config)
            if told is not None:
                self.say(f"{training.name}: {told}")

    def _read(
        self,
        trainings: Sequence[Training],
        progress: Progress,
        failed: list[Failure],
    ) -> list[Training]:
        """Prepares texts; the trainings that have one, the others failed."""
        # A run that has begun has its own.
        reading = {
            training.name: self._text_of(training.config)
            for training in trainings
            if not RunFolder(self.folder / training.name).data.exists()
        }
        texts = {
            reading[t.name]: Text(
                reading[t.name].name, reading[t.name], t.config, t.teacher
            )
            for t in trainings
            if t.name in reading
        }
        ended = self._side_by_side(list(texts.values()), progress)
        unread = {failure.name: failure for failure in ended}
        lost = {
            name: unread[text.name]
            for name, text in reading.items()
            if text.name in unread
        }
        failed += [dataclasses.replace(f, name=n) for n, f in lost.items()]
        return [t for t in trainings if t.name not in lost]

    def _side_by_side(self, tasks: Sequence[Any], progress: Progress) -> list:
        failed: list[Failure] = []
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: dict[Future, Any] = {
                pool.submit(self._process, task, progress): task
                for task in tasks
            }
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    task = waiting.pop(future)
                    failure = future.result()
                    if failure is not None:
                        failed.append(failure)
                    elif not isinstance(task, Text):
                        self.say(f"{task.name}: done, {progress.told()}")
        return failed

    def _text_of(self, config: RunConfig) -> Path:
        digest = hashlib.sha256(text_key(config).encode()).hexdigest()[:12]
        return self.folder / "text" / digest

    def _process(self, task: Any, progress: Progress) -> Failure | None:
        """Does one part."""
        if self._processes.stopping:
            log = self.folder / f"{task.name}.log"
            return Failure(task.name, "not begun", log)
        progress.begin(task)
        try:
            return self._processes.run(task.name, self._values(task))
        finally:
            progress.end(task)

    def _values(self, task: Any) -> dict[str, Any]:
        values: dict[str, Any] = {
            "prepare": None,
            "teacher": None,
            "train": None,
            "text": None,
            "files": None if self.files is None else str(self.files),
            "taught": str(self.folder / "taught"),
            "records": str(self.records),
            "samples": [sample.source for sample in self.plan.samples],
            "rows": {},
        }
        if isinstance(task, Text):
            values["prepare"] = config_to_dict(task.config)
            values["text"] = str(task.folder)
            if task.teacher is not None:
                values["runs"] = self._folders(task.teacher.runs)
                values["teacher"] = {
                    "name": taught_text(task.teacher.row),
                    "config": config_to_dict(task.teacher.row.config),
                }
            return values
        rows: Sequence[Row] = (
            task.rows if isinstance(task, Training) else (task.row,)
        )
        values["rows"] = {row.name: config_to_dict(row.config) for row in rows}
        if isinstance(task, Training):
            values["runs"] = self._folders([task.name])
            values["train"] = config_to_dict(task.config)
            values["text"] = str(self._text_of(task.config))
        else:
            values["runs"] = self._folders(task.runs)
        return values

    def _folders(self, names: Sequence[str]) -> list[str]:
        return [str(self.folder / name) for name in names]

    @contextlib.contextmanager
    def _shown(self, progress: Progress) -> Iterator[None]:
        console = terminal(sys.stderr)
        if console is None:
            yield
            return
        with live_line(console, progress.line):
            yield


def _runs_of(teacher: Teacher | None) -> Sequence[str]:
    return () if teacher is None else teacher.runs
