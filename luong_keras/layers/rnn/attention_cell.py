"""One decoder step with attention and input feeding, for any recurrence."""

import keras
from keras import ops

from luong_keras.layers.argument_checks import (
    check_floats,
    check_mask_names,
    check_states,
    check_step,
    depends_on_step,
)
from luong_keras.layers.rnn.cell_weights import CellWeights
from luong_keras.ops import masking
from luong_keras.ops.products import product
from luong_keras.ops.recurrence import clip_gradient


class AttentionCell(CellWeights):
    """Base class of the LSTM and GRU cells: everything but the recurrence.

    One step (Luong et al. 2015, sections 3 and 3.3), layers 1 ... L:

        x_1 = [embedding; h̃_{t-1}]           input feeding, section 3.3
        h_l = recurrence(x_l, h_l at t - 1),  x_{l+1} = h_l
        c_t = attention(h_L, memory)          section 3.1 or 3.2
        h̃_t = tanh(W_c [c_t; h_L])            eq. 5

    `call` is one step. Loops call its parts instead, so that everything
    independent of the step is computed once: `loop_weights`,
    `project_inputs` and `project_memory` before the loop, `step` inside it,
    `attend` for many steps at once. Subclasses define `num_gates`,
    `states_per_layer` and `recurrence`.
    """

    # Parts of a step. An axis K may follow B: the hypotheses of a beam.

    def loop_weights(self):
        """Return the weights that a step reads, in the compute dtype.

        Loops fetch them once and pass them to each `step`, so that no step
        casts them again.
        """
        cast = self._cast_weight
        return {
            "kernels": [cast(kernel) for kernel in self.kernels],
            "recurrent_kernels": [cast(k) for k in self.recurrent_kernels],
            "biases": [
                cast(self._input_bias(layer))
                for layer in range(self.num_layers)
                if self.use_bias
            ],
            "attentional_bias": (
                cast(self.attentional_bias_vector)
                if self.attention is not None and self.attentional_bias
                else None
            ),
            "feeding_kernel": (
                cast(self.feeding_kernel) if self.attends_in_loop else None
            ),
            "attentional_kernel": (
                cast(self.attentional_kernel)[-self.units :]
                if self.attention is not None
                else None
            ),
        }

    def project_inputs(self, inputs):
        """Compute the inputs' contribution to the first layer's gates, W x + b.

        Maps `inputs` (..., E), of one step or of all steps, to
        (..., gates · U) in at least float32.
        """
        inputs = clip_gradient(inputs, self.gradient_clip)
        bias = None
        if self.use_bias:  # cast alike, whatever the dtype of the model around
            bias = self._cast_weight(self._input_bias(0))
        return product(inputs, self._cast_weight(self.kernels[0]), bias)

    def project_memory(self, memory, keys=None):
        """Project a memory once: (keys, values, value kernel).

        W_cc is the context's part of the attentional kernel. Attention is
        linear in its values: with the values W_cc h̄ it gives W_cc c_t without
        a product per step, and the third result is None. If the attention
        layer's `project_values` keeps the memory as values, the third result
        is W_cc and multiplies the contexts. Given keys are not projected
        again. Returns None without attention.
        """
        if self.attention is None:
            return None
        memory = ops.cast(memory, self.compute_dtype)
        if keys is None:
            keys = self.attention.project_keys(memory)
            keys = ops.cast(keys, self.attention.compute_dtype)
        return keys, *self.attention.project_values(
            memory, self._value_kernel()
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
        """Run one step from projected inputs: (new states, alignments).

        weights from `loop_weights()`; projected (B, gates · U) or
        (B, K, gates · U); states of the widths `state_size`. The last new
        state is the attentional vector h̃_t; the alignments are None without
        attention.
        """
        masks = dropout_masks or {}
        if self.input_feeding:
            fed_vector = _apply_mask(states[-1], masks.get("feeding"))
            fed_vector = clip_gradient(fed_vector, self.gradient_clip)
            projected = product(
                fed_vector, weights["feeding_kernel"], projected
            )
        new_states = self.run_layers(weights, projected, states, masks)
        vector, alignments = self.attend(
            weights,
            self.top_hidden(new_states),
            projected_memory,
            memory_mask,
            position,
            masks.get("attention"),
        )
        return [*new_states, vector], alignments

    def run_layers(self, weights, projected, states, dropout_masks):
        """Run only the recurrent layers of one step."""
        new_states = []
        size = self.states_per_layer
        for layer in range(self.num_layers):
            if layer > 0:
                projected = self.project_below(
                    weights, layer, new_states[-size], dropout_masks
                )
            layer_states = states[layer * size : (layer + 1) * size]
            new_states += self.recurrence(
                weights, layer, projected, *layer_states
            )
        return new_states

    def project_below(self, weights, layer, hidden, dropout_masks):
        """Project the hidden states for layer `layer` > 0, W h + b.

        hidden (..., U) and the dropout masks are of one step or of all steps.
        """
        below = _apply_mask(hidden, dropout_masks.get(f"layer_{layer}"))
        below = clip_gradient(below, self.gradient_clip)
        bias = weights["biases"][layer] if self.use_bias else None
        return product(below, weights["kernels"][layer], bias)

    def top_hidden(self, states):
        """Return the hidden state h of the highest layer."""
        return states[self.top_index]

    @property
    def top_index(self):
        """Index of the highest layer's h among the states."""
        return (self.num_layers - 1) * self.states_per_layer

    def attend(
        self,
        weights,
        hidden,
        projected_memory,
        memory_mask=None,
        position=None,
        dropout_mask=None,
    ):
        """Return h̃ = tanh(W_c [c; h]) (eq. 5) and the attention weights.

        hidden (B, U) is of one step, (B, T, U) of K hypotheses or all steps.
        Without attention h̃ = h.
        """
        if self.attention is None:
            return hidden, None
        context, alignments = self.attend_projected(
            hidden, projected_memory, memory_mask, position, dropout_mask
        )
        return self.attentional_vector(weights, context, hidden), alignments

    def attentional_vector(self, weights, projected_context, hidden):
        """Return the attentional vector h̃ = tanh(W_c [c; h]), eq. 5.

        W_c [c; h] = W_cc c + W_ch h, with the first and the last rows of
        `attentional_kernel`; `projected_context` is W_cc c.
        """
        vector = product(
            hidden, weights["attentional_kernel"], projected_context
        )
        bias = weights["attentional_bias"]
        if bias is not None:
            vector = vector + ops.cast(bias, vector.dtype)
        return self.attentional_activation(vector)

    def attend_projected(
        self, query, projected_memory, mask, position, dropout_mask
    ):
        """Return W_cc c in at least float32, and the attention weights."""
        keys, values, value_kernel = projected_memory
        attention = self.attention
        options = {"position": position} if attention.uses_position else {}
        if dropout_mask is None and attention.dropout > 0:
            # No step draws a mask. `training=False` would also be the default
            # of layers that a subclassed model calls after this one.
            shape = (*ops.shape(query)[:-1], ops.shape(values)[1])
            dropout_mask = ops.ones(shape, dtype=self.compute_dtype)
        context, alignments = attention(
            ops.cast(query, self.compute_dtype),
            values,
            value_mask=mask,
            keys=keys,
            dropout_mask=dropout_mask,
            return_attention_scores=True,
            **options,
        )
        if value_kernel is not None:
            context = product(context, value_kernel)
        return masking.upcast(context), alignments

    def alignment_queries(self, hidden, initial_hidden):
        """Return all attention queries, from the top layer's h (B, T, U)."""
        return hidden

    def dropout_mask_shapes(self, batch, steps, source_length, input_width):
        """Return the shapes, time first, of all possible dropout masks."""
        shapes = {"inputs": (steps, batch, input_width)}
        if self.input_feeding:
            shapes["feeding"] = (steps, batch, self.units)
        for layer in range(1, self.num_layers):
            shapes[f"layer_{layer}"] = (steps, batch, self.units)
        if self.attention is not None:
            shapes["attention"] = (steps, batch, source_length)
        return shapes

    def check_dropout_masks(self, masks, *others):
        """Check that each mask is read by a step or is one of `others`."""
        names = self.dropout_mask_shapes(1, 1, 1, 1)
        check_mask_names(masks, [*names, *others])

    @property
    def attends_in_loop(self):
        """True if the recurrence of a step depends on attention."""
        return self.input_feeding

    def _value_kernel(self):
        return self._cast_weight(self.attentional_kernel)[: -self.units]

    def _cast_weight(self, weight):
        return ops.cast(weight, self.compute_dtype)

    def _input_bias(self, layer):
        return self.biases[layer]

    def recurrence(self, weights, layer, projected, *states):
        """Run one step of one layer; a subclass defines it.

        weights from `loop_weights()`; layer, its index; projected, the
        inputs' contribution to the gates, (B, gates · U); states of the layer,
        each (B, U). In a beam projected and states have one more axis for the
        hypotheses, (B, K, U). Returns the new states, h first.
        """
        raise NotImplementedError

    # One step, as a layer.

    def call(
        self,
        inputs,
        states,
        memory=None,
        memory_mask=None,
        keys=None,
        position=None,
        dropout_masks=None,
        training=False,
        return_attention_scores=False,
    ):
        masks = dropout_masks or {}
        inputs = ops.cast(inputs, self.compute_dtype)
        states = self.cast_states(states)
        if len(states) < len(self.state_size):
            states.append(ops.zeros_like(states[0]))
        if len(inputs.shape) == 3:
            # Hypotheses share the position and the masks of their sentence.
            position = _add_hypothesis_axis(position, 1)
            masks = {k: _add_hypothesis_axis(m, 2) for k, m in masks.items()}
        source_length = None if memory is None else ops.shape(memory)[1]
        if memory is not None and memory.shape[1] == 0:
            keys = None  # `pad_empty_memory` adds a position without a key
        memory, memory_mask, masks = pad_empty_memory(
            memory, memory_mask, masks
        )
        projected_memory = self.project_memory(memory, keys)
        new_states, alignments = self.step(
            self.loop_weights(),
            self.project_inputs(_apply_mask(inputs, masks.get("inputs"))),
            states,
            projected_memory,
            memory_mask,
            position,
            masks,
        )
        outputs = ops.cast(new_states[-1], self.compute_dtype)
        if not return_attention_scores:
            return outputs, new_states
        if alignments is not None:
            alignments = alignments[..., :source_length]
        return outputs, new_states, alignments

    def _check_call(
        self,
        inputs,
        states,
        memory=None,
        memory_mask=None,
        keys=None,
        position=None,
        dropout_masks=None,
        **others,
    ):
        self.check_dropout_masks(dropout_masks)
        check_floats("inputs", inputs, "(B, E)", "(B, K, E)")
        check_states("states", states, self.state_size, inputs.shape[:-1])
        self.check_memory(inputs, memory, memory_mask, keys)
        if not depends_on_step(self.attention):
            return
        if position is not None:
            check_step("position", position, inputs)
        else:
            raise ValueError(
                "Monotonic attention needs to know the decoder step t of a "
                "single step. Expected: `position=t`. Received: "
                "position=None."
            )

    def compute_output_spec(
        self,
        inputs,
        states,
        memory=None,
        *others,
        return_attention_scores=False,
        **options,
    ):
        rows = tuple(inputs.shape[:-1])
        dtype = self.compute_dtype
        wide = masking.wider_dtype(dtype)
        outputs = keras.KerasTensor((*rows, self.units), dtype=dtype)
        new_states = [
            keras.KerasTensor((*rows, width), dtype=wide)
            for width in self.state_size
        ]
        if not return_attention_scores:
            return outputs, new_states
        if self.attention is None:
            raise ValueError(
                "In a functional model, `return_attention_scores=True` needs "
                "a cell with an attention layer. Received: attention=None."
            )
        dtype = self.attention.compute_dtype
        weights = keras.KerasTensor((*rows, memory.shape[1]), dtype=dtype)
        return outputs, new_states, weights


def _apply_mask(x, mask):
    return x if mask is None else x * ops.cast(mask, x.dtype)


def _add_hypothesis_axis(x, rank):
    """Insert a hypothesis axis, (B, 1, ...), if `x` has this rank."""
    if x is None:
        return None
    x = ops.convert_to_tensor(x)
    return ops.expand_dims(x, 1) if len(x.shape) == rank else x


def pad_empty_memory(memory, mask, dropout_masks):
    """Return the memory (B, S, M) and its masks, padded to S = 1 if S = 0.

    Then no loop has an empty axis. The padding is masked: contexts are zero,
    and there are no attention weights to drop.
    """
    if memory is None or memory.shape[1] != 0:
        return memory, mask, dropout_masks
    batch, _, width = ops.shape(memory)
    return (
        ops.zeros((batch, 1, width), dtype=memory.dtype),
        ops.zeros((batch, 1), dtype="bool"),
        {k: m for k, m in dropout_masks.items() if k != "attention"},
    )
