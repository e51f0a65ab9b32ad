"""The weights of the best epoch."""

import os
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import atomic_path
from luong_keras.training.monitoring import check_mode, is_better, monitored
from luong_keras.training.weight_files import check_name


class BestWeights(keras.callbacks.Callback):
    """Save the weights whenever a monitored value reaches its best.

    The file is replaced in one step. The best value is saved with the run, so
    a resumed run does not overwrite better weights.

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
        >>> BestWeights("run/best.weights.h5").get_state()
        {'best': None}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        monitor: str = "val_bleu",
        mode: str = "max",
        model: keras.Model | None = None,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        check_name(self.path)
        check_mode(mode)
        self.monitor = monitor
        self.mode = mode
        self.best: float | None = None
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save the weights if the epoch was the best."""
        value = monitored(logs, self.monitor)
        if not is_better(value, self.best, self.mode):
            return
        with atomic_path(self.path) as temporary:
            (self._saved_model or self.model).save_weights(temporary)
        self.best = value

    def get_state(self) -> dict[str, Any]:
        """Return the best value so far."""
        return {"best": self.best}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the best value of an earlier run."""
        self.best = state["best"]
