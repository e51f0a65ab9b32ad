"""The weights of the best epoch."""

import os
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import atomic_path
from luong_keras.training.monitoring import LOSS, BestEpoch
from luong_keras.training.weight_files import check_name

_EPOCHS_OF_ZERO = 3


class BestWeights(BestEpoch):
    """Save the weights whenever a monitored value reaches its best.

    Of epochs with the same value the one with less `val_loss` is the better.
    The file is replaced in one step. The best result is saved with the run,
    so a resumed run does not overwrite better weights. Where a value of 0 is
    all that there was while the loss fell, a line says so, after the third
    epoch and at the end.

    Args:
        path: The file, ending in `.weights.h5`.
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.
        model: The model whose weights to save, where it is not the one that
            is trained but shares its layers.

    Raises:
        ValueError: If the name of the file or `mode` is not as above, or if
            an epoch's logs lack the value.

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
        # Whether the loss alone made the best epoch better than the others.
        self.by_loss = False
        self._epochs = 0
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save the weights if the epoch was the best."""
        before = self.best
        if self.improved(logs):
            with atomic_path(self.path) as temporary:
                (self._saved_model or self.model).save_weights(temporary)
            self.by_loss = self.best == before
        if epoch + 1 == _EPOCHS_OF_ZERO:
            self._say_zero(epoch + 1)
        self._epochs = epoch + 1

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Say where the value has told nothing."""
        if self._epochs not in (0, _EPOCHS_OF_ZERO):
            self._say_zero(self._epochs)

    def _say_zero(self, epochs: int) -> None:
        if self.best == 0 and self.mode == "max" and self.by_loss:
            print(
                f"\n{self.monitor} has been 0 in all {epochs} epochs while "
                f"{LOSS} fell, so the best epoch is that of the lowest "
                f"{LOSS}. Another metric may say more (training.metric).",
                flush=True,
            )
