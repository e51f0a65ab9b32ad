"""The paper's decoder step with gated recurrent units."""

import keras

from luong_keras.layers.rnn.attention_cell import AttentionCell
from luong_keras.ops.recurrence import gru_step


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingGRUCell(AttentionCell):
    """One decoder step: stacked GRU, attention on top, input feeding below.

    As `InputFeedingLSTMCell`, with gated recurrent units in the form of
    `keras.layers.GRU(reset_after=True)` for comparison; arguments and call
    arguments are the same but for `unit_forget_bias` and the clips.

    The states are `[h_1, ..., h_L, h̃]`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingGRUCell
    >>> cell = InputFeedingGRUCell(8, attention="general")
    >>> states = cell.get_initial_state(batch_size=2)
    >>> vector, states = cell(
    ...     np.ones((2, 5)), states, memory=np.ones((2, 6, 8))
    ... )
    >>> tuple(vector.shape), len(states)
    ((2, 8), 2)

    Reference:
        Cho et al. (2014), arXiv:1406.1078; Luong, Pham and Manning (2015),
        section 3.3 and eq. 5.
    """

    num_gates = 3
    states_per_layer = 1

    def _add_gate_bias(self, name):
        # An input bias and a recurrent one, as in keras.layers.GRU.
        return self.add_weight(
            name=name,
            shape=(2, self.num_gates * self.units),
            initializer=self.bias_initializer.clone(),
        )

    def _input_bias(self, layer):
        return self.biases[layer][0]

    def loop_weights(self):
        recurrent_biases = [self._ready(bias)[1] for bias in self.biases]
        return {**super().loop_weights(), "recurrent_biases": recurrent_biases}

    def recurrence(self, weights, layer, projected, hidden):
        bias = weights["recurrent_biases"][layer] if self.use_bias else None
        kernel = weights["recurrent_kernels"][layer]
        return [gru_step(projected, hidden, kernel, bias)]
