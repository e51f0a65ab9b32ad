"""The paper's decoder step: LSTM or GRU layers, attention, input feeding."""

import keras

from luong_keras.config.checks import check_positive_or_none
from luong_keras.layers.initializers import fresh_initializer
from luong_keras.layers.rnn.attention_cell import AttentionCell
from luong_keras.ops.recurrence import gru_step, lstm_step


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingLSTMCell(AttentionCell):
    """One decoder step: stacked LSTM, attention on top, input feeding below.

        z_1 = W_1 [x_t; h̃_{t-1}] + R_1 h_1 + b_1   (section 3.3)
        c_t = attention(h_L, memory)               (section 3.1 or 3.2)
        h̃_t = tanh(W_c [c_t; h_L])                 (eq. 5)

    It contains the LSTM layers, the given attention layer and W_c. Use it in
    user-defined loops such as a beam search; `InputFeedingLSTM` runs it over
    a sequence. `keras.layers.RNN` cannot run it, because it cannot pass the
    memory.

    Args:
        units: U, width of every layer and of the attentional vector.
        num_layers: L, the number of stacked layers.
        attention: A `LuongAttention`, `LocalAttention` or
            `BahdanauAttention` layer, or a name: `"local-m"`, `"local-p"`,
            `"bahdanau"` or the name of a score, such as `"general"`. None
            makes a plain recurrent layer: h̃ = h, no W_c and no memory.
        input_feeding: Whether h̃_{t-1} enters the lowest layer.
        use_bias: Whether the gates have biases (the authors' program has
            none).
        unit_forget_bias: Whether the forget gate's bias starts at 1.
        cell_clip: Bound of the memory cells c, which are clipped to
            [-cell_clip, cell_clip] after each step; their gradient passes
            unclipped. None: no clipping. 50 in the authors' program.
        gradient_clip: Bound of the gradients of all that a layer reads (its
            input, the fed vector, h and c of the step before), which are
            clipped entry by entry. None: no clipping. 1000 in the authors'
            program.
        attentional_bias: Whether eq. 5 has a bias (none in the paper).
        attentional_activation: Activation of eq. 5; `"linear"` is the form
            of TensorFlow Addons.
        kernel_initializer: Initializer of the input, feeding and attentional
            kernels.
        recurrent_initializer: Initializer of the recurrent kernels.
        bias_initializer: Initializer of the biases.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        inputs: x_t, (B, E), or (B, K, E) for the K hypotheses of a beam.
        states: `[h_1, c_1, ..., h_L, c_L, h̃]`, each (B, U) or (B, K, U);
            zeros from `get_initial_state(batch_size)`.
        memory: H̄, (B, S, M); the hypotheses share it.
        memory_mask: Boolean (B, S), True = may be attended.
        keys: `attention.project_keys(memory)`, to project once.
        position: The decoder step t, an integer or one per sentence (B,),
            for monotonic local attention.
        dropout_masks: Dict of masks, already divided by the keep probability:
            `"inputs"` (B, E), `"feeding"` (B, U), `"layer_1"` ...
            (B, U), `"attention"` (B, S). A missing name means no dropout;
            the cell draws no masks.
        training: Accepted as in every layer, but only the masks count.
        return_attention_scores: Whether to return the weights after the
            softmax too.

    Output:
        (h̃_t, new_states), with `return_attention_scores` also the weights
        (B, S) or (B, K, S). States are in at least float32.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTMCell
    >>> cell = InputFeedingLSTMCell(8, attention="general")
    >>> states = cell.get_initial_state(batch_size=2)
    >>> vector, states, weights = cell(
    ...     np.ones((2, 5)), states, memory=np.ones((2, 6, 8)),
    ...     return_attention_scores=True,
    ... )
    >>> tuple(vector.shape), len(states), tuple(weights.shape)
    ((2, 8), 3, (2, 6))

    Reference:
        Luong, Pham and Manning (2015), section 3.3 and eq. 5.
    """

    num_gates = 4
    states_per_layer = 2

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
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_positive_or_none(cell_clip=cell_clip, gradient_clip=gradient_clip)
        super().__init__(
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
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        self.unit_forget_bias = unit_forget_bias
        self.cell_clip = cell_clip
        self.gradient_clip = gradient_clip

    def _add_gate_bias(self, name):
        if not self.unit_forget_bias:
            return super()._add_gate_bias(name)
        width = self.num_gates * self.units

        def initializer(shape, dtype=None):
            start = fresh_initializer(self.bias_initializer)(shape, dtype=dtype)
            is_forget = keras.ops.arange(width) // self.units == 1
            return keras.ops.where(
                is_forget, keras.ops.ones((), dtype=start.dtype), start
            )

        return self.add_weight(
            name=name, shape=(width,), initializer=initializer
        )

    def recurrence(self, weights, layer, projected, hidden, carry):
        kernel = weights["recurrent_kernels"][layer]
        return list(
            lstm_step(
                projected,
                hidden,
                carry,
                kernel,
                self.cell_clip,
                self.gradient_clip,
            )
        )

    def get_config(self):
        return {
            **super().get_config(),
            "unit_forget_bias": self.unit_forget_bias,
            "cell_clip": self.cell_clip,
            "gradient_clip": self.gradient_clip,
        }


@keras.saving.register_keras_serializable(package="luong_keras")
class InputFeedingGRUCell(AttentionCell):
    """One decoder step: stacked GRU, attention on top, input feeding below.

    `InputFeedingLSTMCell` with gated recurrent units, in the form of
    `keras.layers.GRU(reset_after=True)`, for comparison. The arguments and
    call arguments are the same, without `unit_forget_bias` and the clips.

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
            initializer=fresh_initializer(self.bias_initializer),
        )

    def _input_bias(self, layer):
        return self.biases[layer][0]

    def loop_weights(self):
        recurrent_biases = [self._cast_weight(bias)[1] for bias in self.biases]
        return {**super().loop_weights(), "recurrent_biases": recurrent_biases}

    def recurrence(self, weights, layer, projected, hidden):
        bias = weights["recurrent_biases"][layer] if self.use_bias else None
        kernel = weights["recurrent_kernels"][layer]
        return [gru_step(projected, hidden, kernel, bias)]
