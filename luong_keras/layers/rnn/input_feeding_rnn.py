"""Decoders as single layers: an `AttentionRNN` that makes its cell."""

import keras

from luong_keras.layers.rnn.attention_rnn import AttentionRNN
from luong_keras.layers.rnn.bahdanau_cells import (
    BahdanauGRUCell,
    BahdanauLSTMCell,
)
from luong_keras.layers.rnn.input_feeding_cells import (
    InputFeedingGRUCell,
    InputFeedingLSTMCell,
)


class _CellRNN(AttentionRNN):
    """An `AttentionRNN` that makes its own cell from flat arguments."""

    def get_config(self):
        rnn_config = super().get_config()
        cell_config = rnn_config.pop("cell")["config"]
        # The cell computes in the driver's dtype.
        for name in ("name", "dtype", "trainable"):
            cell_config.pop(name, None)
        return {**cell_config, **rnn_config}


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingLSTM(_CellRNN):
    """The paper's decoder: stacked LSTM, attention, input feeding.

    `AttentionRNN` over an `InputFeedingLSTMCell`, as `keras.layers.LSTM` is an
    RNN over an `LSTMCell`.

    Args:
        units: U, width of every layer and of the attentional vector.
        num_layers, attention, input_feeding, use_bias, unit_forget_bias,
            cell_clip, gradient_clip, attentional_bias,
            attentional_activation, kernel_initializer,
            recurrent_initializer, bias_initializer: as in
            `InputFeedingLSTMCell`.
        return_sequences, return_state, dropout, dropout_style,
            deferred_gradients, seed: as in `AttentionRNN`.
        name, dtype, trainable: As in every Keras layer.

    Call arguments and output: as in `AttentionRNN`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTM
    >>> decoder = InputFeedingLSTM(8, num_layers=2, attention="local-p")
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    def __init__(
        self,
        units,
        num_layers=1,
        attention="general",
        input_feeding=True,
        use_bias=True,
        unit_forget_bias=True,
        cell_clip=None,
        gradient_clip=None,
        attentional_bias=False,
        attentional_activation="tanh",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        return_sequences=True,
        return_state=False,
        dropout=0.0,
        dropout_style="zaremba",
        deferred_gradients="auto",
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        cell = InputFeedingLSTMCell(
            units,
            num_layers=num_layers,
            attention=attention,
            input_feeding=input_feeding,
            use_bias=use_bias,
            unit_forget_bias=unit_forget_bias,
            cell_clip=cell_clip,
            gradient_clip=gradient_clip,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dtype=dtype,
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            dropout=dropout,
            dropout_style=dropout_style,
            deferred_gradients=deferred_gradients,
            seed=seed,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingGRU(_CellRNN):
    """`InputFeedingLSTM` with gated recurrent units.

    Arguments and call as in `InputFeedingLSTM`, without `unit_forget_bias`
    and the clips, over an `InputFeedingGRUCell`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingGRU
    >>> decoder = InputFeedingGRU(8)
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    def __init__(
        self,
        units,
        num_layers=1,
        attention="general",
        input_feeding=True,
        use_bias=True,
        attentional_bias=False,
        attentional_activation="tanh",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        return_sequences=True,
        return_state=False,
        dropout=0.0,
        dropout_style="zaremba",
        deferred_gradients="auto",
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        cell = InputFeedingGRUCell(
            units,
            num_layers=num_layers,
            attention=attention,
            input_feeding=input_feeding,
            use_bias=use_bias,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dtype=dtype,
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            dropout=dropout,
            dropout_style=dropout_style,
            deferred_gradients=deferred_gradients,
            seed=seed,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauLSTM(_CellRNN):
    """Decoder of the path h_{t-1} -> a_t -> c_t -> h_t, for comparison.

    Arguments and call as in `InputFeedingLSTM`, over a `BahdanauLSTMCell`,
    which always has attention and never input feeding.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauLSTM
    >>> decoder = BahdanauLSTM(8)
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    def __init__(
        self,
        units,
        num_layers=1,
        attention="bahdanau",
        use_bias=True,
        unit_forget_bias=True,
        cell_clip=None,
        gradient_clip=None,
        attentional_bias=False,
        attentional_activation="tanh",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        return_sequences=True,
        return_state=False,
        dropout=0.0,
        dropout_style="zaremba",
        deferred_gradients="auto",
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        cell = BahdanauLSTMCell(
            units,
            num_layers=num_layers,
            attention=attention,
            use_bias=use_bias,
            unit_forget_bias=unit_forget_bias,
            cell_clip=cell_clip,
            gradient_clip=gradient_clip,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dtype=dtype,
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            dropout=dropout,
            dropout_style=dropout_style,
            deferred_gradients=deferred_gradients,
            seed=seed,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauGRU(_CellRNN):
    """`BahdanauLSTM` with gated recurrent units, over a `BahdanauGRUCell`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauGRU
    >>> decoder = BahdanauGRU(8)
    >>> tuple(decoder(np.ones((2, 3, 5)), memory=np.ones((2, 6, 4))).shape)
    (2, 3, 8)
    """

    def __init__(
        self,
        units,
        num_layers=1,
        attention="bahdanau",
        use_bias=True,
        attentional_bias=False,
        attentional_activation="tanh",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        return_sequences=True,
        return_state=False,
        dropout=0.0,
        dropout_style="zaremba",
        deferred_gradients="auto",
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        cell = BahdanauGRUCell(
            units,
            num_layers=num_layers,
            attention=attention,
            use_bias=use_bias,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dtype=dtype,
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            dropout=dropout,
            dropout_style=dropout_style,
            deferred_gradients=deferred_gradients,
            seed=seed,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
