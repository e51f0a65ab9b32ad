"""The files of a training run and their names."""

import json
import os
from pathlib import Path
from typing import Any

from luong_keras.training.atomic_file import write_json

_CONTENTS = {
    "config": ("config.json", "the resolved configuration"),
    "data": ("data.json", "a hash of all that decides the batches"),
    "corpus": ("corpus", "the checked training text"),
    "source_vocabulary": ("source_vocabulary.json", "the source tokenizer"),
    "target_vocabulary": ("target_vocabulary.json", "the target tokenizer"),
    "snapshot": ("snapshot.npz", "what a resumed run needs"),
    "best_weights": ("best.weights.h5", "the weights of the best epoch"),
    "last_weights": ("last.weights.h5", "the weights of the last epoch"),
    "log": ("log.jsonl", "one line of results an epoch"),
    "results": ("results.jsonl", "scores with their signatures"),
    "translations": ("test.txt", "the test translations"),
    "tensorboard": ("tensorboard", "curves, for TensorBoard"),
    "samples": ("samples", "the translations after each epoch"),
    "plots": ("plots", "figures"),
    "export": ("export", "the SavedModel, for serving"),
}


class RunFolder:
    """Name the files of a run, read and write its configuration.

    Every path is an attribute: `config`, `data`, `source_vocabulary`,
    `target_vocabulary`, `snapshot`, `best_weights`, `last_weights`, `log`,
    `results`, `translations`, and the folders `corpus`, `tensorboard`,
    `samples`, `plots`, `export`.

    Args:
        path: The folder; made by the first writing.

    Example:
        >>> import tempfile
        >>> run = RunFolder(tempfile.mkdtemp())
        >>> run.write_config({"units": 1000})
        >>> run.read_config()
        {'units': 1000}
        >>> run.log.name
        'log.jsonl'
    """

    config: Path
    data: Path
    corpus: Path
    source_vocabulary: Path
    target_vocabulary: Path
    snapshot: Path
    best_weights: Path
    last_weights: Path
    log: Path
    results: Path
    translations: Path
    tensorboard: Path
    samples: Path
    plots: Path
    export: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        for attribute, (name, _) in _CONTENTS.items():
            setattr(self, attribute, self.path / name)

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the configuration; a run that goes on must have the same.

        Args:
            config: What JSON can hold.

        Raises:
            ValueError: If the folder holds another configuration.
        """
        # Through JSON, so that tuples compare equal to what was read.
        config = json.loads(json.dumps(config))
        if self.config.exists():
            _check_same(self.config, self.read_config(), config)
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.config, config)

    def write_data(self, fingerprint: str) -> None:
        """Write what the batches are made of; a resumed run must have it.

        Args:
            fingerprint: That of `TrainingBatches`.

        Raises:
            ValueError: If the run began with other data: the position in the
                data that its snapshot has would mean something else.
        """
        if self.data.exists():
            old = json.loads(self.data.read_text(encoding="utf-8"))
            if old != {"fingerprint": fingerprint}:
                raise ValueError(
                    f"The training text of {str(self.path)!r} is not the one "
                    "that the run began with, or its tokenizers are not. Put "
                    "the old files back, or use a new folder for a new run."
                )
        write_json(self.data, {"fingerprint": fingerprint})

    def read_config(self) -> dict[str, Any]:
        """Read the configuration.

        Returns:
            What `write_config` was given.

        Raises:
            FileNotFoundError: If the folder holds no run.
        """
        if not self.config.exists():
            raise FileNotFoundError(
                f"Expected a run in {str(self.path)!r}. Received: a folder "
                f"without {self.config.name}. Check the path, or train first."
            )
        return json.loads(self.config.read_text(encoding="utf-8"))

    def tree(self) -> str:
        """Draw what the folder holds so far.

        Returns:
            One line a file: its name, its size and what it is.

        Example:
            >>> import tempfile
            >>> run = RunFolder(tempfile.mkdtemp() + "/quickstart")
            >>> run.write_config({})
            >>> print(run.tree())
            quickstart/
              config.json                  3 B  the resolved configuration
        """
        lines = [f"{self.path.name}/"]
        for attribute, (name, meaning) in _CONTENTS.items():
            path: Path = getattr(self, attribute)
            if not path.exists():
                continue
            if path.is_dir():
                name += "/"
            lines.append(f"  {name:<22} {_size(path):>9}  {meaning}")
        return "\n".join(lines)


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    different = [
        f"{key}: {old.get(key)!r} there, {new.get(key)!r} now"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    if different:
        raise ValueError(
            "A run goes on with the configuration it began with, "
            f"{str(path)!r}. Received another: {'; '.join(different)}. Use a "
            "new folder for a new run."
        )


def _size(path: Path) -> str:
    files = [path] if path.is_file() else path.rglob("*")
    size = float(sum(item.stat().st_size for item in files if item.is_file()))
    if size < 1000:
        return f"{size:.0f} B"
    unit = next((u for u in (1, 2) if size < 1000 ** (u + 1)), 3)
    return f"{size / 1000**unit:.1f} {'kMG'[unit - 1]}B"
