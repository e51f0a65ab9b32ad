"""The end of a run that no longer gets better."""

from typing import Any

from luong_keras.training.monitoring import BestEpoch


class StopOnPlateau(BestEpoch):
    """End the run after some epochs in a row that were not the best.

    Of epochs with the same value the one with less `val_loss` is the better.
    Unlike `keras.callbacks.EarlyStopping` it has its best value and what it
    has waited saved with the run: `luong_keras.training.fit.fit` trains no
    more where it has ended, and goes on where the patience is larger now, as
    a run that had it from the beginning.

    Args:
        patience: The number of epochs; `None` counts them and never ends.
        monitor: The key of the value in the logs of an epoch.
        mode: `"max"` or `"min"`, the better direction.

    Raises:
        ValueError: If the patience is below 1, `mode` is unknown, or if an
            epoch's logs lack the value.

    Example:
        >>> StopOnPlateau(patience=3).ended
        False
    """

    def __init__(
        self,
        patience: int | None = None,
        monitor: str = "val_bleu",
        mode: str = "max",
    ) -> None:
        super().__init__(monitor, mode)
        if patience is not None and patience < 1:
            raise ValueError(
                "`patience` is a number of epochs, at least 1. Received: "
                f"patience={patience}. None never ends the run."
            )
        self.patience = patience

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Compare, and end the run when the patience is over."""
        self.improved(logs)
        if self.ended:
            self.model.stop_training = True
            print(
                f"\nThe best {self.monitor}, {self.best}, is {self.waited} "
                f"epochs old: the training ends after epoch {epoch + 1}.",
                flush=True,
            )

    @property
    def ended(self) -> bool:
        """Whether the run is at its end."""
        return self.patience is not None and self.waited >= self.patience
