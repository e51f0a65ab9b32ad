"""A log that programs and people can read."""

import json
import os
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import atomic_path


class JsonLinesLog(keras.callbacks.Callback):
    """Write the logs of each epoch as one line of JSON.

    An epoch that ran twice, because the run was killed between its end and
    the snapshot, has one line: that of the later time.

    Args:
        path: The file; a resumed run goes on in it.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> log = JsonLinesLog(path)
        >>> log.on_epoch_end(0, {"loss": 2.5})
        >>> log.on_epoch_end(1, {"loss": 2.0})
        >>> print(path.read_text(), end="")
        {"epoch": 1, "loss": 2.5}
        {"epoch": 2, "loss": 2.0}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Write the line of the epoch, counted from 1."""
        number = epoch + 1
        line: dict[str, float] = {"epoch": number}
        line.update((key, float(value)) for key, value in (logs or {}).items())
        lines = [old for old in self.read() if old["epoch"] < number]
        with atomic_path(self.path) as temporary:
            temporary.write_text(
                "".join(json.dumps(item) + "\n" for item in [*lines, line]),
                encoding="utf-8",
            )

    def read(self) -> list[dict[str, float]]:
        """Read the lines written so far.

        Returns:
            One dict an epoch.
        """
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]
