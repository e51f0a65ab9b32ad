"""Files of a training run and their names."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from luong_keras.files.atomic_file import read_json, write_json
from luong_keras.files.path_checks import local_path, no_link
from luong_keras.suggestions import did_you_mean

_RESTORE = "Put a copy in its place, or use a new folder for a new run."
OTHER_TEXT = (
    "The training text or the tokenizers of '{}' are not those that the run "
    "began with. Put the old files back, or use a new folder for a new run."
)
# Names of weights that do not belong to one numbered epoch.
WEIGHTS = ("best", "last")
_SUFFIX = ".weights.h5"
_EPOCH = re.compile(r"epoch-(\d+)")


def epoch_path(folder: str | os.PathLike[str], number: int) -> Path:
    """Return the path of the weight file of an epoch.

    Args:
        folder: The folder of the file.
        number: The epoch, counted from 1.

    Returns:
        The path.

    Example:
        >>> epoch_path("checkpoints", 7).as_posix()
        'checkpoints/epoch-007.weights.h5'
    """
    return Path(folder) / f"epoch-{number:03d}{_SUFFIX}"


class _Content:
    """A file or folder of a run; as an attribute of a run, its path."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning

    def __get__(self, run: RunFolder, _: type[RunFolder]) -> Path:
        return run.path / self.name


class RunFolder:
    """Folder of a training run, with its files and its configuration.

    Each path is an attribute, such as `best_weights`.
    `print(run)` lists the existing files and their contents.

    Args:
        path: The folder; the first write creates it.

    Example:
        >>> import tempfile
        >>> run = RunFolder(tempfile.mkdtemp())
        >>> run.write_config({"units": 1000})
        >>> run.read_config()
        {'units': 1000}
        >>> run.log.name
        'log.jsonl'
    """

    config = _Content("config.json", "the resolved configuration")
    data = _Content(
        "data.json",
        "a hash of the data and settings that determine the batches",
    )
    corpus = _Content("corpus", "the checked training text")
    dev = _Content("dev.jsonl", "the validation pairs")
    test = _Content("test.jsonl", "the test pairs")
    source_vocabulary = _Content(
        "source_vocabulary.json", "the source tokenizer"
    )
    target_vocabulary = _Content(
        "target_vocabulary.json", "the target tokenizer"
    )
    source_words = _Content(
        "source_vocabulary.vocab", "the words of the source tokenizer"
    )
    target_words = _Content(
        "target_vocabulary.vocab", "the words of the target tokenizer"
    )
    source_subwords = _Content(
        "source_vocabulary.model", "SentencePiece's model of the source"
    )
    target_subwords = _Content(
        "target_vocabulary.model", "SentencePiece's model of the target"
    )
    dictionary = _Content("dictionary.txt", "translations of unknown words")
    shortlist = _Content("shortlist.txt", "words that a translation may have")
    parent = _Content("parent.json", "the origin of the initial weights")
    initial_weights = _Content("initial.weights.h5", "the initial weights")
    snapshot = _Content("snapshot.npz", "the latest snapshot")
    previous_snapshot = _Content(
        "snapshot.previous.npz", "the previous snapshot"
    )
    best_weights = _Content("best.weights.h5", "the weights of the best epoch")
    last_weights = _Content("last.weights.h5", "the weights of the last epoch")
    checkpoints = _Content("checkpoints", "the weights of single epochs")
    log = _Content("log.jsonl", "the results of each epoch")
    results = _Content("results.jsonl", "scores with their signatures")
    translations = _Content("test.txt", "the test translations")
    sessions = _Content("sessions.jsonl", "time and machine of each session")
    report = _Content("report.html", "the page of the run")
    tensorboard = _Content("tensorboard", "curves, for TensorBoard")
    samples = _Content("samples", "the translations after each epoch")
    plots = _Content("plots", "the alignment of the first test sentence")
    export = _Content("export", "the SavedModel, for serving")
    finished = _Content("finished.json", "the last scoring and export")
    pairs = _Content("pairs", "text given in memory")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path)

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the configuration, which holds JSON-compatible values."""
        write_json(self.config, config)

    def write_data(self, fingerprint: str, corpus: str | None = None) -> None:
        """Write a hash of the training data; a resumed run must have the same.

        Args:
            fingerprint: The fingerprint of `TrainingBatches`.
            corpus: The fingerprint of the checked training text, to be written
                too (`check_corpus`).

        Raises:
            ValueError: If the run began with other data, in which the position
                of its snapshot would mean something else.
        """
        if self.data.exists():
            self.check_pairs()
            if self.hashes().get("fingerprint") != fingerprint:
                raise ValueError(OTHER_TEXT.format(self.path))
        sums = {p.name: _crc32(p) for p in (self.dev, self.test) if p.exists()}
        write_json(
            self.data, {"fingerprint": fingerprint, "corpus": corpus, **sums}
        )

    def check_corpus(self, corpus: str) -> None:
        """Check the fingerprint of a training text that was read again.

        Raises:
            ValueError: If the run began with another text.
        """
        if self.hashes().get("corpus") not in (None, corpus):
            raise ValueError(OTHER_TEXT.format(self.path))

    def hashes(self) -> dict[str, Any]:
        """Return the hashes of `data`; runs of older versions lack some."""
        return (
            read_json(self.data, "a hash of the data", _RESTORE)
            if self.data.exists()
            else {}
        )

    def check_pairs(self) -> None:
        """Check that the files `dev` and `test` have not changed.

        Raises:
            ValueError: If one of the files has changed since the run began.
        """
        checksums = self.hashes()
        for path in (self.dev, self.test):
            if path.exists() and checksums.get(path.name) not in (
                None,
                _crc32(path),
            ):
                raise ValueError(
                    f"{path} is not the file that the run wrote: its checksum "
                    "differs. Put a copy in its place, or remove it: it is "
                    "made again from the text that the run began with."
                )

    def check_rebuilt(self, path: Path, text: str) -> None:
        """Check the new content of a lost file, `dev` or `test`.

        Raises:
            ValueError: If the run began with other pairs.
        """
        crc32 = zlib.crc32(text.encode())
        if self.hashes().get(path.name) not in (None, crc32):
            raise ValueError(
                f"{path} is missing, and would have other pairs if it were "
                "made again, as the text has changed, or another version chose "
                "the pairs. Put a copy of the file or the old text in its "
                "place, or use the version that began the run."
            )

    def read_config(self) -> dict[str, Any]:
        """Read the configuration.

        Returns:
            The configuration that `write_config` wrote.

        Raises:
            FileNotFoundError: If the folder holds no run.
            ValueError: If the file is damaged, or a link.
        """
        if not no_link(self.config).exists():
            raise FileNotFoundError(
                f"Expected a run in {str(self.path)!r}. Received: a folder "
                f"without {self.config.name}. Check the path, or train first."
            )
        return read_json(self.config, "the configuration of a run", _RESTORE)

    def weights(self, name: str) -> Path:
        """Find a weight file by the name of the weights.

        Args:
            name: `"best"`, `"last"`, or an epoch, counted from 1, such as
                `"epoch-7"`.

        Returns:
            The file.

        Raises:
            ValueError: If the name is unknown, or the file is a link.
            FileNotFoundError: If the run has no such weights.

        Example:
            >>> import tempfile
            >>> run = RunFolder(tempfile.mkdtemp())
            >>> run.last_weights.touch()
            >>> run.weights("last").name
            'last.weights.h5'
            >>> run.weights("epoch-7")
            Traceback (most recent call last):
            FileNotFoundError: Expected: the weights ...epoch-007.weights.h5...
        """
        epoch = _EPOCH.fullmatch(name)
        if epoch is None and name not in WEIGHTS:
            raise ValueError(
                f"Expected: weights named {', '.join(WEIGHTS)} or, such as "
                f"epoch-7, those of an epoch. Received: {name}."
                f"{did_you_mean(name, WEIGHTS)} {self._describe_weights()}"
            )
        path: Path = (
            getattr(self, f"{name}_weights")
            if epoch is None
            else epoch_path(self.checkpoints, int(epoch[1]))
        )
        if not no_link(path).exists():
            raise FileNotFoundError(
                f"Expected: the weights {path}. Received: no such file. "
                f"{self._describe_weights()}"
            )
        return path

    def _describe_weights(self) -> str:
        """Describe the available weights in a sentence."""
        names = [
            name
            for name in WEIGHTS
            if getattr(self, f"{name}_weights").exists()
        ]
        names += [
            path.name.removesuffix(_SUFFIX)
            for path in sorted(self.checkpoints.glob(f"epoch-*{_SUFFIX}"))
        ]
        if not names:
            return "Has the run finished its first epoch?"
        return (
            f"{self.path} has {', '.join(names)}. `training.keep` keeps more."
        )

    def tree(self) -> str:
        """List the existing files of the folder.

        Returns:
            One line per file with its name, size and content.

        Example:
            >>> import tempfile
            >>> run = RunFolder(tempfile.mkdtemp() + "/quickstart")
            >>> run.write_config({})
            >>> print(run.tree())
            quickstart/
              config.json                3 bytes  the resolved configuration
        """
        lines = [f"{self.path.name or self.path.resolve().name}/"]
        for content in vars(RunFolder).values():
            if not isinstance(content, _Content):
                continue
            path = self.path / content.name
            if path.exists():
                name = content.name + "/" * path.is_dir()
                size = decimal(_count_bytes(path))
                lines.append(f"  {name:<24} {size:>9}  {content.meaning}")
        return "\n".join(lines)

    __repr__ = tree


def _crc32(path: Path) -> int:
    return zlib.crc32(no_link(path).read_bytes())


def _count_bytes(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(item.stat().st_size for item in files if item.is_file())
