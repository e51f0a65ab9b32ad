"""The exponential average of the weights, as a file."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
from keras import ops

from luong_keras.files.atomic_file import atomic_path
from luong_keras.training.weight_files import check_name


class ExponentialWeights(keras.callbacks.Callback):
    """Save the averages that the optimizer keeps, after each epoch.

    The training does not notice: the weights have the averages' values while
    the file is written, and then their own bits again.

    Args:
        path: The file, ending in `.weights.h5`.
        model: The model whose weights to save, where it is not the one that
            is trained but shares its layers.
        writes: Whether this process saves the file. Of several that train
            together one does, but the values change in all of them.

    Raises:
        ValueError: If the name of the file is not as above, or while training
            with an optimizer that keeps no averages.

    Example:
        >>> ExponentialWeights("run/exponential.weights.h5").path.name
        'exponential.weights.h5'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: keras.Model | None = None,
        writes: bool = True,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        check_name(self.path)
        self.writes = writes
        self._saved_model = model

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Save them."""
        trained = self.model  # On JAX it has the newest values from here on.
        optimizer = trained.optimizer
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        averages = getattr(inner, "averages", None)
        if averages is None:
            raise ValueError(
                "The optimizer must keep averages of the weights. Received: "
                f"{type(inner).__name__} without. Make it by "
                "`make_optimizer(average_decay=0.999)`."
            )
        values = [ops.convert_to_numpy(average) for average in averages]
        with _holding(trained.trainable_variables, values):
            if self.writes:
                with atomic_path(self.path) as temporary:
                    (self._saved_model or trained).save_weights(temporary)


@contextlib.contextmanager
def _holding(
    variables: Sequence[keras.Variable], values: Sequence[Any]
) -> Iterator[None]:
    """Gives variables other values until the end of the block."""
    before = [ops.convert_to_numpy(variable) for variable in variables]
    try:
        _assign(variables, values)
        yield
    finally:
        _assign(variables, before)


def _assign(variables: Sequence[keras.Variable], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
