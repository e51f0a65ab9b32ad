"""The decoder path of Bahdanau et al. (2015), for comparison."""

import keras
from keras import ops

from luong_keras.layers.decoder.input_feeding_gru_cell import (
    InputFeedingGRUCell,
)
from luong_keras.layers.decoder.input_feeding_lstm_cell import (
    InputFeedingLSTMCell,
)


class _BahdanauPath:
    """Attention before the recurrence: h_{t-1} -> a_t -> c_t -> h_t.

        c_t = attention(h_{L,t-1}, memory)
        x_1 = [embedding; c_t],  h_l = recurrence(...)
        h̃_t = tanh(W_c [c_t; h_L])

    Luong et al. (2015), section 3.1, "Comparison to (Bahdanau et al.,
    2015)", describe this order. The read-out is the attentional layer of
    eq. 5 instead of a deep output with maxout, so that a comparison varies
    the path alone. The context takes the place of the fed vector: input
    feeding is off.
    """

    def __init__(self, units, attention, **kwargs):
        if attention is None:
            raise ValueError(
                f"`{type(self).__name__}` feeds the context to the "
                "recurrence and needs an attention layer. Received: "
                "attention=None. Pass `attention=BahdanauAttention()`."
            )
        kwargs.pop("input_feeding", None)
        super().__init__(
            units, attention=attention, input_feeding=False, **kwargs
        )

    def _build_feeding(self, memory_shape):
        self.feeding_kernel = self.add_weight(
            name="feeding_kernel",
            shape=(memory_shape[-1], self.num_gates * self.units),
            initializer=self.kernel_initializer.clone(),
        )

    @property
    def _feeds(self):
        return True

    def _value_kernel(self):
        # The context is read twice, by the gates and by W_c.
        return ops.concatenate(
            [self._ready(self.feeding_kernel), super()._value_kernel()],
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
        context, alignments = self._context(
            self.top_hidden(states),
            projected_memory,
            memory_mask,
            position,
            masks.get("attention"),
        )
        gates = self.num_gates * self.units
        projected = projected + context[..., :gates]
        new_states = self.recur(weights, projected, states, masks)
        vector = self.attentional_vector(
            weights, context[..., gates:], self.top_hidden(new_states)
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

    The context of the state before the step enters the lowest layer in place
    of the fed vector; the read-out is tanh(W_c [c_t; h_L]) (eq. 5).

    Args:
        units: U, width of every layer and of the attentional vector.
        attention: the attention layer, required.
        **kwargs: those of `InputFeedingLSTMCell`, without `input_feeding`.

    Call arguments and output: as in `InputFeedingLSTMCell`; there is no
    `"feeding"` among the dropout masks.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauAttention, BahdanauLSTMCell
    >>> cell = BahdanauLSTMCell(8, attention=BahdanauAttention())
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


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauGRUCell(_BahdanauPath, InputFeedingGRUCell):
    """`BahdanauLSTMCell` with gated recurrent units, as in the original.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauAttention, BahdanauGRUCell
    >>> cell = BahdanauGRUCell(8, attention=BahdanauAttention())
    >>> vector, states = cell(
    ...     np.ones((2, 5)),
    ...     cell.get_initial_state(2),
    ...     memory=np.ones((2, 6, 4)),
    ... )
    >>> tuple(vector.shape), len(states)
    ((2, 8), 2)
    """
