"""Callbacks that write weights at the end of epochs."""

import os
import re
import warnings
from pathlib import Path
from typing import Any

import keras

from luong_keras.config.checks import check_integers
from luong_keras.training.monitoring import BestEpoch
from luong_keras.training.run_folder import epoch_path
from luong_keras.training.weight_files import (
    check_name,
    save_weights,
    write_mean,
)

_EPOCHS_UNTIL_REPORT = 3
_NAME = re.compile(r"epoch-(\d+)\.weights\.h5")


class BestWeights(BestEpoch):
    """Callback that saves the weights of the best epoch so far.

    Equal values are compared as in `StopOnPlateau`.
    The file is replaced atomically. The best value is saved with the run, so a
    resumed run does not overwrite better weights. If the best value is still 0
    while the loss fell, or all values are NaN, the callback prints a line after
    the third epoch and at the end.

    Args:
        path: The file, ending in `.weights.h5`.
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.
        model: The model whose weights to save, if it differs from the trained
            model and shares its layers.

    Raises:
        ValueError: If the name of the file or `mode` is not as above, or the
            logs of an epoch lack the value.

    Example:
        >>> BestWeights("run/best.weights.h5", "val_loss", "min").path.name
        'best.weights.h5'
    """

    saved = (*BestEpoch.saved, "by_loss")

    def __init__(
        self,
        path: str | os.PathLike[str],
        monitor: str = "val_bleu",
        mode: str = "max",
        model: keras.Model | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        self.path = Path(path)
        check_name(self.path)
        # Whether only the loss made the best epoch better than the earlier one.
        self.by_loss = False
        self._epochs = 0
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save the weights if the epoch is the best so far."""
        before = self.best
        if self.improved(logs):
            save_weights(self._saved_model or self.model, self.path)
            self.by_loss = self.best == before
        if epoch + 1 == _EPOCHS_UNTIL_REPORT:
            self._report_useless(epoch + 1)
        self._epochs = epoch + 1

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Warn about a metric that was 0 or NaN in every epoch."""
        if self._epochs not in (0, _EPOCHS_UNTIL_REPORT):
            self._report_useless(self._epochs)

    def _report_useless(self, epochs: int) -> None:
        if self.best is None:
            print(
                f"\n{self.monitor} has been NaN in all {epochs} epochs, so "
                f"there is no best epoch and no {self.path.name}. Correct the "
                "metric, or take the last weights "
                "(training.final_weights=last).",
                flush=True,
            )
        if self.best == 0 and self.mode == "max" and self.by_loss:
            print(
                f"\n{self.monitor} has been 0 in all {epochs} epochs while "
                "the validation loss fell, so the best epoch is that of the "
                "lowest loss. Another metric may say more (training.metric).",
                flush=True,
            )


class EpochWeights(keras.callbacks.Callback):
    """Callback that keeps the weights of recent epochs and writes their mean.

    After each epoch it writes the weights to a file such as
    `epoch-007.weights.h5` if they are needed, then the mean, and then removes
    older files of epochs that are no longer needed. It does not change other
    files of the folder. A resumed run leaves the same files.

    Args:
        folder: The folder of the files.
        keep: The number of latest epochs whose weights stay.
        average_epochs: The number of latest epochs whose mean is computed, in
            float64; fewer at the beginning of a run. Their files stay as long
            as the mean needs them. `None` for no mean.
        average_path: The file of the mean, ending in `.weights.h5`.
        model: The model whose weights to save, if it differs from the trained
            model and shares its layers.

    Raises:
        ValueError: If an argument is not as above.

    Example:
        >>> EpochWeights("run/checkpoints", keep=3).keep
        3
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        keep: int = 0,
        average_epochs: int | None = None,
        average_path: str | os.PathLike[str] | None = None,
        model: keras.Model | None = None,
    ) -> None:
        super().__init__()
        check_integers(minimum=0, keep=keep)
        check_integers(optional=True, average_epochs=average_epochs)
        if (average_epochs is None) != (average_path is None):
            raise ValueError(
                "`average_epochs` and `average_path` go together. Received: "
                f"average_epochs={average_epochs}, "
                f"average_path={average_path!r}."
            )
        if average_path is not None:
            check_name(average_path)
        self.folder = Path(folder)
        self.keep = keep
        self.average_epochs = average_epochs
        self.average_path = average_path
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save the weights, write the mean, and remove old files."""
        number = epoch + 1
        mean_epochs = _last_epochs(self.average_epochs or 0, number)
        needed = {*_last_epochs(self.keep, number), *mean_epochs}
        if number in needed:
            path = epoch_path(self.folder, number)
            save_weights(self._saved_model or self.model, path)
        if mean_epochs:
            self._write_mean(mean_epochs)
        self._remove_before(number, needed)

    def _write_mean(self, numbers: list[int]) -> None:
        assert self.average_path is not None  # since the constructor
        paths = [epoch_path(self.folder, number) for number in numbers]
        existing = [path for path in paths if path.exists()]
        if len(existing) < len(paths):
            missing = ", ".join(p.name for p in paths if p not in existing)
            warnings.warn(
                f"Expected {missing} in {self.folder} for the mean. Received: "
                "no such file. The mean is of the others.",
                stacklevel=2,
            )
        if existing:
            write_mean(existing, self.average_path)

    def _remove_before(self, number: int, needed: set[int]) -> None:
        for path in self.folder.glob("epoch-*"):
            match = _NAME.fullmatch(path.name)
            epoch = int(match[1]) if match else number
            if epoch < number and epoch not in needed:
                path.unlink(missing_ok=True)


def _last_epochs(count: int, number: int) -> list[int]:
    """Return the last `count` epochs, or fewer, up to epoch `number`."""
    return list(range(max(1, number - count + 1), number + 1))
