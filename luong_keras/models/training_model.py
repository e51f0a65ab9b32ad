"""The model that `fit` trains: its batches may go through it in parts."""

import keras

from luong_keras.models import microbatches
from luong_keras.ops import microbatch_normalization
from luong_keras.ops.chunked_loss import evaluates


@keras.saving.register_keras_serializable(package="luong_keras")
class TrainingModel(keras.Model):
    """A functional model whose batches may go through it in parts.

    The parts of a batch are computed on several devices at once, if
    `keras.distribution` is set (JAX), one after the other to save memory, or
    several at once to use the cores of a CPU. The gradient is that of the
    whole batch: the sums of all parts, divided once by the number of words or
    sentences of the batch, and clipped once.

    It is made from inputs and outputs, like every functional model.

    Attributes:
        microbatches: Number of parts per device; 1 by default. On JAX it must
            divide the number of rows. Set it before `fit`; it is not saved
            with the model.
        parallel_microbatches: Number of parts that are computed at once, on
            TensorFlow; 1 by default. Set it before `fit`, like
            `microbatches`.

    Raises:
        ValueError: In `fit`, with several parts or devices and a loss from
            outside this library or losses of layers (regularizers,
            `add_loss`), with several parts on torch, and with several parts
            at once on another backend than TensorFlow.

    Example:
        >>> inputs = keras.Input((None,), dtype="int32")
        >>> model = TrainingModel(inputs, inputs + 1)
        >>> model.microbatches
        1
    """

    microbatches: int = 1
    parallel_microbatches: int = 1

    def __new__(cls, *args, **kwargs):
        for name in ("microbatches", "parallel_microbatches"):
            if name in kwargs:
                raise ValueError(
                    f"Expected: `{name}` set as an attribute, `model.{name} = "
                    f"{kwargs[name]}`. Received: an argument, which Keras "
                    "would ignore."
                )
        return super().__new__(cls, *args, **kwargs)

    def train_step(self, *data):
        """Run one step; see `keras.Model`."""
        backend = keras.backend.backend()
        if backend == "tensorflow" and self.microbatches > 1:
            return microbatches.train_step(
                self, *data, self.microbatches, self.parallel_microbatches
            )
        if backend != "tensorflow" and self.parallel_microbatches > 1:
            raise ValueError(
                "Only TensorFlow can compute the parts of a batch in "
                "parallel. Received: parallel_microbatches="
                f"{self.parallel_microbatches} on {backend}. Use "
                "parallel_microbatches=1."
            )
        if backend == "torch" and self.microbatches > 1:
            raise ValueError(
                "Only TensorFlow and JAX can process a batch in parts. "
                f"Received: microbatches={self.microbatches} on torch. Use "
                "microbatches=1, and smaller batches if memory is short."
            )
        return super().train_step(*data)

    def test_step(self, *data):
        """Evaluate a batch, with the losses in chunks; see `keras.Model`."""
        token = evaluates.set(True)
        try:
            return super().test_step(*data)
        finally:
            evaluates.reset(token)

    def compute_loss(self, *args, **kwargs):
        """Compute the loss of a batch or of a part; see `keras.Model`."""
        if microbatch_normalization.is_open() and self.losses:
            raise ValueError(
                "A batch that is processed in parts cannot have losses of "
                "layers, such as regularizers: they would be divided by its "
                f"number of words. Received: {len(self.losses)} of them in "
                "`model.losses`. Use `weight_decay` of the optimizer, or "
                "microbatches=1 on one device."
            )
        return super().compute_loss(*args, **kwargs)

    def compute_loss_and_updates(
        self,
        trainable_variables,
        non_trainable_variables,
        metrics_variables,
        x,
        y,
        sample_weight,
        training=False,
        optimizer_variables=None,
    ):
        """Compute the loss of a batch on JAX; see `keras.Model`."""
        compute_part = super().compute_loss_and_updates
        state = (
            trainable_variables,
            non_trainable_variables,
            metrics_variables,
            optimizer_variables,
        )
        rows = (x, y, sample_weight)
        parts = self.microbatches if training else 1
        if parts == 1 and not microbatches.is_distributed():
            return compute_part(
                *state[:3], *rows, training, optimizer_variables
            )
        return microbatches.loss_and_updates(
            self, compute_part, state, rows, training, parts
        )


def named_outputs(**outputs):
    """Return the outputs by name, each from a layer of that name.

    Keras before 3.12 finds metrics only by the names of layers.
    """
    return {
        name: keras.layers.Identity(dtype=output.dtype, name=name)(output)
        for name, output in outputs.items()
    }
