"""A log that programs and people can read."""

import json
import math
import os
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.inside import no_link


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
        line: dict[str, float | None] = {"epoch": number}
        for key, value in (logs or {}).items():
            # JSON has no NaN and no infinity.
            line[key] = float(value) if math.isfinite(value) else None
        lines = [old for old in self.read() if old["epoch"] < number]
        with atomic_path(self.path) as temporary:
            temporary.write_text(
                "".join(json.dumps(item) + "\n" for item in [*lines, line]),
                encoding="utf-8",
            )

    def read(self) -> list[dict[str, Any]]:
        """Read the lines written so far.

        Returns:
            One dict an epoch; None stands for a number that was none. What
            is left of a last line that was cut is left out.

        Raises:
            ValueError: If another line is damaged, with its number, or the
                file is a link.
        """
        if not no_link(self.path).exists():
            return []
        text = self.path.read_bytes().decode("utf-8", errors="replace")
        lines, found = text.splitlines(), []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(_results(line))
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines) and not text.endswith("\n"):
                    break
                raise ValueError(
                    f"Expected the results of an epoch in {self.path}, line "
                    f"{number}. Received: {line[:80]!r} ({error}). Remove "
                    "the line."
                ) from error
        return found


def _results(line: str) -> dict[str, Any]:
    """One line of the log."""
    results = json.loads(line)
    if not isinstance(results["epoch"], int):
        raise ValueError("`epoch` is no integer")
    return results
