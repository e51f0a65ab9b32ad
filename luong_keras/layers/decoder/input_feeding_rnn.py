"""The decoders as one layer each: a cell in its `MemoryRNN`."""

import keras

from luong_keras.layers.decoder.bahdanau_cells import (
    BahdanauGRUCell,
    BahdanauLSTMCell,
)
from luong_keras.layers.decoder.input_feeding_gru_cell import (
    InputFeedingGRUCell,
)
from luong_keras.layers.decoder.input_feeding_lstm_cell import (
    InputFeedingLSTMCell,
)
from luong_keras.layers.decoder.memory_rnn import MemoryRNN

# The arguments that belong to the driver; all others describe the cell.
_DRIVER = (
    "return_sequences",
    "return_state",
    "dropout",
    "dropout_style",
    "deferred_gradients",
    "seed",
    "name",
    "dtype",
    "trainable",
)


class _CellRNN(MemoryRNN):
    """A `MemoryRNN` that makes its own cell from flat arguments."""

    cell_class = None

    def __init__(self, units, **kwargs):
        driver = {k: kwargs.pop(k) for k in _DRIVER if k in kwargs}
        # The cell computes in the driver's dtype.
        cell = self.cell_class(units, dtype=driver.get("dtype"), **kwargs)
        super().__init__(cell, **driver)

    def get_config(self):
        driver = super().get_config()
        cell = driver.pop("cell")["config"]
        for shared in ("name", "dtype", "trainable"):
            cell.pop(shared, None)
        return {**cell, **driver}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        if isinstance(config.get("attention"), dict):
            config["attention"] = keras.saving.deserialize_keras_object(
                config["attention"]
            )
        return cls(**config)


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingLSTM(_CellRNN):
    """The paper's decoder: stacked LSTM, attention, input feeding.

    `MemoryRNN` over an `InputFeedingLSTMCell`, as `keras.layers.LSTM` is an
    RNN over an `LSTMCell`.

    Args:
        units: U, width of every layer and of the attentional vector.
        **kwargs: `num_layers`, `attention`, `input_feeding`, `use_bias`, …
            of `InputFeedingLSTMCell`; `return_sequences`, `return_state`,
            `dropout`, `dropout_style`,
            `deferred_gradients`, `seed` of `MemoryRNN`; `name`,
            `dtype` of a Keras layer.

    Call arguments and output: as in `MemoryRNN`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTM, LuongAttention
    >>> decoder = InputFeedingLSTM(8, num_layers=2, attention=LuongAttention())
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    cell_class = InputFeedingLSTMCell


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingGRU(_CellRNN):
    """`InputFeedingLSTM` with gated recurrent units.

    Arguments and call as there, over an `InputFeedingGRUCell`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingGRU, LuongAttention
    >>> decoder = InputFeedingGRU(8, attention=LuongAttention())
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    cell_class = InputFeedingGRUCell


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauLSTM(_CellRNN):
    """The decoder path h_{t-1} -> a_t -> c_t -> h_t, for comparison.

    Arguments and call as in `InputFeedingLSTM`, over a `BahdanauLSTMCell`;
    `attention` is required and there is no `input_feeding`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauAttention, BahdanauLSTM
    >>> decoder = BahdanauLSTM(8, attention=BahdanauAttention())
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    cell_class = BahdanauLSTMCell


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauGRU(_CellRNN):
    """`BahdanauLSTM` with gated recurrent units, over a `BahdanauGRUCell`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauAttention, BahdanauGRU
    >>> decoder = BahdanauGRU(8, attention=BahdanauAttention())
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    cell_class = BahdanauGRUCell
