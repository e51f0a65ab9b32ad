"""The process of one training, of one ensemble, or of a text: its parts.

    python -m reproduction.worker TASK.json

It is started by `processes`, beside others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config_values import config_from_dict
from luong_keras.data.datasets import Datasets, load_datasets
from luong_keras.files.atomic_file import write_text
from luong_keras.files.json_file import read_json
from luong_keras.recipe.preparation import prepare_text, read_text
from luong_keras.recipe.run import run_recipe
from luong_keras.recipe.vocabularies import count_lengths, prepare_tokenizers
from reproduction.plan import with_text
from reproduction.record import write_record
from reproduction.scoring import score_row
from reproduction.tasks import STOPPED, TEST_TEXT
from reproduction.taught_text import write_taught_text
from luong_keras.training.run_folder import RunFolder

_VOCABULARIES = "*_vocabulary.*"
_TEXT = ("corpus", _VOCABULARIES)
# Which text the vocabularies are of.
_READ = "fingerprint"


def main(path: str) -> int:
    """Does what a file of JSON says.

    Returns:
        The exit status.
    """
    task = read_json(path, "a task", "Give the command again.")

    def config_of(values: dict[str, Any]) -> RunConfig:
        config = config_from_dict(values)
        return with_text(config, task["files"], task["taught"])

    if task["teacher"] is not None:
        write_taught_text(
            Path(task["taught"], task["teacher"]["name"]),
            config_of(task["teacher"]["config"]),
            task["runs"],
        )
    if task["prepare"] is not None:
        _prepare_text(config_of(task["prepare"]), RunFolder(task["text"]))
        return 0
    runs = [RunFolder(run) for run in task["runs"]]
    if task["train"] is not None:
        (run,) = runs
        if not run.data.exists():
            _link_text(Path(task["text"]), run.path)
        if not run_recipe(config_of(task["train"]), run.path, train_only=True):
            return STOPPED
    for name, values in task["rows"].items():
        config = config_from_dict(values)
        datasets = _datasets(config_of(values), runs[0])
        record = score_row(name, config, runs, datasets, task["samples"])
        print(write_record(Path(task["records"]), record))
    return 0


def _end_with_parent() -> None:
    """Stops this process, with a snapshot, when the one that began it ends."""
    # Not by `sys.stdin`, whose lock would be held as the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _prepare_text(config: RunConfig, folder: RunFolder) -> None:
    """Checks the text and makes its vocabularies, for all runs that read it."""
    folder.path.mkdir(parents=True, exist_ok=True)
    _, corpus = prepare_text(config, folder)
    note = folder.path / _READ
    if not note.exists() or note.read_text() != corpus.fingerprint:
        # Vocabularies of what the text was before.
        for path in folder.path.glob(_VOCABULARIES):
            path.unlink()
        write_text(note, corpus.fingerprint)
    tokenizers = prepare_tokenizers(corpus, config, folder)
    count_lengths(corpus, tokenizers, config)


def _link_text(source: Path, target: Path) -> None:
    """The same files in another folder; nothing writes into them again."""
    target.mkdir(parents=True, exist_ok=True)
    for pattern in _TEXT:
        for path in source.glob(pattern):
            own = target / path.name
            if path.is_dir():
                shutil.rmtree(own, ignore_errors=True)
                shutil.copytree(path, own, copy_function=_link)
            else:
                _link(path, own)


def _link(source: str | Path, target: str | Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    try:
        os.link(source, target)
    except OSError:  # a file system without them
        shutil.copyfile(source, target)


def _datasets(config: RunConfig, run: RunFolder) -> Datasets:
    """The test pairs of a row; those of its run unless it names others."""
    own = config_from_dict(run.read_config()).data
    if all(getattr(own, n) == getattr(config.data, n) for n in TEST_TEXT):
        return read_text(run)[0]
    return load_datasets(config.data)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main(sys.argv[1]))
