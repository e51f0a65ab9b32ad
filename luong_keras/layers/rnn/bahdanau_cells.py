"""The decoder path of Bahdanau et al. (2015), for comparison."""

import keras
from keras import ops

from luong_keras.layers.initializers import fresh_initializer
from luong_keras.layers.rnn.input_feeding_cells import (
    InputFeedingGRUCell,
    InputFeedingLSTMCell,
)


def _require_attention(cell, attention):
    if attention is None:
        raise ValueError(
            f"`{type(cell).__name__}` feeds the context to the "
            "recurrence and needs an attention layer. Received: "
            'attention=None. Pass `attention="bahdanau"`.'
        )
    return attention


class _BahdanauPath:
    """Attention before the recurrence: h_{t-1} -> a_t -> c_t -> h_t.

        c_t = attention(h_{L,t-1}, memory)
        x_1 = [embedding; c_t],  h_l = recurrence(...)
        h̃_t = tanh(W_c [c_t; h_L])

    Luong et al. (2015), section 3.1, "Comparison to (Bahdanau et al.,
    2015)", describe this order. The read-out is the attentional layer of
    eq. 5 instead of a deep output with maxout, so that a comparison varies
    only the path. The context takes the place of the fed vector: input
    feeding is off.
    """

    def _build_feeding(self, memory_shape):
        self.feeding_kernel = self.add_weight(
            name="feeding_kernel",
            shape=(memory_shape[-1], self.num_gates * self.units),
            initializer=fresh_initializer(self.kernel_initializer),
        )

    @property
    def attends_in_loop(self):
        return True

    def _value_kernel(self):
        # The context is read twice, by the gates and by W_c.
        return ops.concatenate(
            [self._cast_weight(self.feeding_kernel), super()._value_kernel()],
            axis=-1,
        )

    def step(
        self,
        weights,
        projected,
        states,
        projected_memory=None,
        memory_mask=None,
        position=None,
        dropout_masks=None,
    ):
        masks = dropout_masks or {}
        context, alignments = self.attend_projected(
            self.top_hidden(states),
            projected_memory,
            memory_mask,
            position,
            masks.get("attention"),
        )
        gates = self.num_gates * self.units
        gates_context, vector_context = ops.split(context, [gates], axis=-1)
        projected = projected + gates_context
        new_states = self.run_layers(weights, projected, states, masks)
        vector = self.attentional_vector(
            weights, vector_context, self.top_hidden(new_states)
        )
        return [*new_states, vector], alignments

    def alignment_queries(self, hidden, initial_hidden):
        first = ops.expand_dims(initial_hidden, 1)
        return ops.concatenate([first, hidden[:, :-1]], axis=1)

    def get_config(self):
        config = super().get_config()
        del config["input_feeding"]
        return config


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauLSTMCell(_BahdanauPath, InputFeedingLSTMCell):
    """One step of the path h_{t-1} -> a_t -> c_t -> h_t with LSTM layers.

    The query is the state before the step. The context enters the lowest
    layer instead of the fed vector, but no dropout mask drops its units, and
    `gradient_clip` does not clip its gradient; the read-out is
    tanh(W_c [c_t; h_L]) (eq. 5).

    Args:
        units: U, width of every layer and of the attentional vector.
        attention: A layer or a name, as in `InputFeedingLSTMCell`; not None.
        num_layers, use_bias, unit_forget_bias, cell_clip, gradient_clip,
            attentional_bias, attentional_activation, kernel_initializer,
            recurrent_initializer, bias_initializer, name, dtype, trainable:
            as in `InputFeedingLSTMCell`.

    Call arguments and output: as in `InputFeedingLSTMCell`; the dropout
    masks have no `"feeding"`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauLSTMCell
    >>> cell = BahdanauLSTMCell(8)
    >>> vector, states = cell(
    ...     np.ones((2, 5)),
    ...     cell.get_initial_state(2),
    ...     memory=np.ones((2, 6, 4)),
    ... )
    >>> tuple(vector.shape), len(states)
    ((2, 8), 3)

    Reference:
        Luong, Pham and Manning (2015), section 3.1; Bahdanau, Cho and Bengio
        (2015), arXiv:1409.0473.
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
        name=None,
        dtype=None,
        trainable=True,
    ):
        super().__init__(
            units,
            num_layers=num_layers,
            attention=_require_attention(self, attention),
            input_feeding=False,
            use_bias=use_bias,
            unit_forget_bias=unit_forget_bias,
            cell_clip=cell_clip,
            gradient_clip=gradient_clip,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauGRUCell(_BahdanauPath, InputFeedingGRUCell):
    """`BahdanauLSTMCell` with gated recurrent units, as in the original.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauGRUCell
    >>> cell = BahdanauGRUCell(8)
    >>> vector, states = cell(
    ...     np.ones((2, 5)),
    ...     cell.get_initial_state(2),
    ...     memory=np.ones((2, 6, 4)),
    ... )
    >>> tuple(vector.shape), len(states)
    ((2, 8), 2)
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
        name=None,
        dtype=None,
        trainable=True,
    ):
        super().__init__(
            units,
            num_layers=num_layers,
            attention=_require_attention(self, attention),
            input_feeding=False,
            use_bias=use_bias,
            attentional_bias=attentional_bias,
            attentional_activation=attentional_activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
