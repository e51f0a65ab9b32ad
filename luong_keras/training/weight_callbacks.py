"""Callbacks that write weights at the end of epochs."""

import os
import re
from pathlib import Path
from typing import Any

import keras

from luong_keras.config.checks import check_integers
from luong_keras.training.monitoring import BestEpoch
from luong_keras.training.run_folder import epoch_path
from luong_keras.training.weight_files import check_name, save_weights

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
    """Callback that keeps the weights of recent epochs.

    After each epoch it writes the weights to a file such as
    `epoch-007.weights.h5`, and removes older files of epochs that are no longer
    kept. It does not change other files of the folder. A resumed run leaves the
    same files.

    Args:
        folder: The folder of the files.
        keep: The number of latest epochs whose weights stay.
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
        model: keras.Model | None = None,
    ) -> None:
        super().__init__()
        check_integers(minimum=0, keep=keep)
        self.folder = Path(folder)
        self.keep = keep
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save the weights, and remove old files."""
        number = epoch + 1
        if self.keep:
            path = epoch_path(self.folder, number)
            save_weights(self._saved_model or self.model, path)
        for path in self.folder.glob("epoch-*"):
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) <= number - max(self.keep, 1):
                path.unlink(missing_ok=True)
