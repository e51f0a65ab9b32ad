"""The input-feeding LSTM over all steps, its backward loop written by hand.

One step, layers 1 ... L (Luong et al. 2015, section 3.3 and eq. 5):

    z_1 = W_1 x_t + [h̃_{t-1}; h_1] K_1,   z_l = [h_{l-1}; h_l] K_l + b_l
    h_l, c_l = lstm(z_l, c_l)
    p = W_cc c_t + W_ch h_L (+ b),   c_t = attention(h_L),   h̃_t = tanh(p)

Backward, from the gradient of h̃_t, with the one that comes from step t + 1:

    dp = dh̃ (1 - h̃²)
    dh_L += dp W_chᵀ + the attention's gradient of its query
    dz_l, dc_l from dh_l and dc_l;   [dh_{l-1}; dh_l] = dz_l K_lᵀ

Behind that loop the gradients of K_l, b_l, W_ch and b are one product each.
Those of everything the attention reads beside its query need no loop at all:
all queries are known, so one call attends for all T and is differentiated
automatically, with dp as the gradient of its contexts.
"""

import keras
from keras import activations, ops

from luong_keras.layers.decoder.lstm_sequence import SLOPES
from luong_keras.ops.products import (
    bias_gradient,
    product,
    weight_gradient,
)
from luong_keras.ops.recurrence import (
    bounded,
    lstm_activations,
    lstm_gradients,
    lstm_slopes,
)
from luong_keras.ops.time_loop import (
    added,
    before,
    carried,
    split_carried,
    split_masks,
    time_loop,
    with_gradient,
)


class FeedingSequence:
    """One run of an `InputFeedingLSTMCell` over all steps of a sequence.

    Args:
        cell: the cell, with input feeding.
        projected_memory: its `project_memory(memory)`.
        memory_mask: boolean (B, S) or None.
        mask: boolean (T, B) or None; False carries the states over.
        masks: dropout masks by name, time first.
        real_steps: the number of every step (B, T), or None where they are
            numbered in their order.
    """

    def __init__(
        self, cell, projected_memory, memory_mask, mask, masks, real_steps=None
    ):
        self.cell = cell
        self.layers = range(cell.num_layers)
        self.attention = cell.attention
        self.memory_mask = memory_mask
        self.real_steps = real_steps
        self.repeated, self.steps = split_masks(masks)
        self.masks, self.constants, self.attention_step = masks, [], None
        if mask is not None:
            self.steps["mask"] = mask
        if self.attention is not None:
            self.projected_memory = projected_memory
            keys, values, self.value_kernel = map(_constant, projected_memory)
            if projected_memory[0] is projected_memory[1]:
                keys = values  # so that a window is gathered once
            self.attention_step = cell.attention.step(keys, values, memory_mask)
            self.constants = [
                (variable, ops.stop_gradient(variable.value))
                for variable in self.attention.trainable_variables
            ]

    def run(self, projected, states, with_top=False):
        """Vectors h̃ (T, B, U) and the last states.

        projected (T, B, 4U) from `cell.project_inputs`; states as
        `cell.state_size`. `with_top` also returns h of the top layer at all
        steps, else None stands there.
        """
        weights = self._weights()
        arguments = [projected, *weights, *states]
        self._hold(weights)
        start = [ops.stop_gradient(state) for state in states]
        last, hiddens, vectors, kept = self._forward(
            ops.stop_gradient(projected), start
        )
        if self.attention is not None:
            # By automatic differentiation: all that the attention reads.
            arguments.append(self._contexts(hiddens[-1]))

        def gradients(upstream):
            d_vectors, *d_last = upstream
            xs = {**self.steps, **kept, "d_vector": d_vectors}
            if with_top:
                xs["d_top"] = d_last.pop()
            d_start, dz, dp = self._backward(d_last, xs)
            d_weights = self._weight_gradients(dz, dp, start, hiddens, vectors)
            d_contexts = [ops.swapaxes(d, 0, 1) for d in dp]
            return [dz[0], *d_weights, *d_start, *d_contexts]

        results = [vectors, *last]
        if with_top:
            results.append(hiddens[-1])
        first, *last = with_gradient(results, gradients, arguments)
        top = last.pop() if with_top else None
        return first, top, last

    # Weights.

    def _weights(self):
        """K_1 ... K_L, b_2 ... b_L, W_ch and b, as far as there are any."""
        found = self.cell.loop_weights()
        below = [found["feeding_kernel"], *found["kernels"][1:]]
        kernels = [
            ops.concatenate(pair, axis=0)
            for pair in zip(below, found["recurrent_kernels"], strict=True)
        ]
        vector = []
        if self.attention is not None:
            vector.append(found["attentional_kernel"])
            if self.cell.attentional_bias:
                vector.append(
                    ops.convert_to_tensor(self.cell.attentional_bias_vector)
                )
        biases = [ops.convert_to_tensor(b) for b in self.cell.biases[1:]]
        return [*kernels, *biases, *vector]

    def _hold(self, weights):
        """What the loops read of them, in the order of `_weights`."""
        weights = [ops.stop_gradient(weight) for weight in weights]
        height = self.cell.num_layers
        self.kernels, rest = weights[:height], weights[height:]
        self.biases = [None] * height
        if self.cell.use_bias:
            self.biases, rest = [None, *rest[: height - 1]], rest[height - 1 :]
        self.vector_kernel, self.vector_bias = [*rest, None, None][:2]

    # Forward.

    def _forward(self, projected, start):
        """The last states, all h_l, all h̃, and what the way back reads."""
        names = [f"{name}_{i}" for i in self.layers for name in SLOPES]
        if self.attention is not None:
            names += ["vector", "top", "weights"]
        xs = {
            "projected": projected,
            "position": self._positions(projected),
            **self.steps,
        }
        with self._constant_attention():
            last, sequences, kept = time_loop(
                self._step,
                start,
                xs,
                stacked=self.cell.num_layers + 1,
                kept=len(names),
            )
        # Differentiated by `_backward` alone.
        *hiddens, vectors = [ops.stop_gradient(x) for x in sequences]
        return last, hiddens, vectors, dict(zip(names, kept, strict=True))

    def _step(self, states, x):
        below, new, insides = states[-1], [], []
        below = self._drop(below, "feeding", x)
        for i in self.layers:
            if i > 0:
                below = self._drop(new[-2], f"layer_{i}", x)
            hidden, carry = states[2 * i : 2 * i + 2]
            z = product(
                ops.concatenate([below, hidden], axis=-1), self.kernels[i]
            )
            bias = x["projected"] if i == 0 else self.biases[i]
            z = z if bias is None else z + ops.cast(bias, z.dtype)
            gates, squashed, carry = lstm_activations(z, carry)
            new += [gates[-1] * squashed, bounded(carry, self.cell.cell_clip)]
            insides += lstm_slopes(gates, squashed, states[2 * i + 1])
        top = new[-2]
        vector, weights = self._attend(top, x)
        if self.attention is not None:
            insides += [vector, top, weights]
        new = carried([*new, vector], states, x.get("mask"))
        return new, [*new[:-1:2], new[-1]], insides

    def _attend(self, hidden, x):
        """Vector h̃ of one step (eq. 5) and the weights of its softmax."""
        if self.attention is None:
            return hidden, None
        context, weights = self.attention_step.attend(
            ops.cast(hidden, self.cell.compute_dtype),
            **self._attention_options(x),
        )
        if self.value_kernel is not None:
            context = product(context, self.value_kernel)
        vector = context + product(hidden, self.vector_kernel)
        if self.vector_bias is not None:
            vector = vector + ops.cast(self.vector_bias, vector.dtype)
        return self.cell.attentional_activation(vector), weights

    def _attention_options(self, x):
        mask = x.get("attention", self.repeated.get("attention"))
        return {"position": x["position"], "dropout_mask": mask}

    def _contexts(self, top):
        """W_cc c_t of all steps (B, T, U), by one call of the attention."""
        mask = self.masks.get("attention")
        context, _ = self.cell._context(
            ops.swapaxes(top, 0, 1),
            self.projected_memory,
            self.memory_mask,
            self.real_steps,
            None if mask is None else ops.swapaxes(mask, 0, 1),
        )
        return context

    # Backward.

    def _backward(self, d_last, xs):
        """The gradients of the first states, all dz_l, and dp in a list."""
        xs["position"] = self._positions(xs["d_vector"])
        self.transposed = [ops.transpose(kernel) for kernel in self.kernels]
        if self.attention is not None:
            self.vector_transposed = ops.transpose(self.vector_kernel)
            if self.value_kernel is not None:
                self.value_transposed = ops.transpose(self.value_kernel)
        height = self.cell.num_layers
        with self._constant_attention():
            d_start, found, _ = time_loop(
                self._step_back,
                d_last,
                xs,
                stacked=height + (self.attention is not None),
                reverse=True,
            )
        return d_start, found[:height], found[height:]

    def _step_back(self, d_states, x):
        d_states = [*d_states[:-1], d_states[-1] + x["d_vector"]]
        if "d_top" in x:
            top = 2 * self.cell.num_layers - 2
            d_states[top] = d_states[top] + x["d_top"]
        d_new, d_old = split_carried(d_states, x.get("mask"))
        d_below, dp = self._attend_back(d_new[-1], x)
        dz, d_previous = [], []
        for i in reversed(self.layers):
            d_layer, d_carry = lstm_gradients(
                [x[f"{name}_{i}"] for name in SLOPES],
                d_new[2 * i] + d_below,
                d_new[2 * i + 1],
            )
            both = self._bounded(product(d_layer, self.transposed[i]))
            d_below, d_hidden = ops.split(both, 2, axis=-1)
            name = f"layer_{i}" if i > 0 else "feeding"
            d_below = self._drop(d_below, name, x)
            d_previous = [d_hidden, self._bounded(d_carry), *d_previous]
            dz = [d_layer, *dz]
        return added([*d_previous, d_below], d_old), [*dz, *dp], []

    def _attend_back(self, d_vector, x):
        """The gradient of h_L, and dp where there is attention."""
        if self.attention is None:
            return d_vector, []
        dp = d_vector
        if self.cell.attentional_activation is not activations.linear:
            dp = d_vector * (1 - x["vector"] * x["vector"])
        d_context = dp
        if self.value_kernel is not None:
            d_context = product(dp, self.value_transposed)
        d_query = self.attention_step.query_gradient(
            d_context,
            ops.cast(x["top"], self.cell.compute_dtype),
            x["weights"],
            **self._attention_options(x),
        )
        return product(dp, self.vector_transposed) + d_query, [dp]

    def _weight_gradients(self, dz, dp, start, hiddens, vectors):
        """One product for each of `_weights`."""
        belows = [before(start[-1], vectors), *hiddens[:-1]]
        names = ["feeding", *(f"layer_{i}" for i in self.layers[1:])]
        found = []
        for i in self.layers:
            below = belows[i] * self.masks.get(names[i], 1)
            hidden = before(start[2 * i], hiddens[i])
            both = ops.concatenate([below, hidden], axis=-1)
            found.append(weight_gradient(both, dz[i], self.kernels[i]))
        if self.cell.use_bias:
            found += [bias_gradient(d) for d in dz[1:]]
        if dp:
            found.append(
                weight_gradient(hiddens[-1], dp[0], self.vector_kernel)
            )
            if self.vector_bias is not None:
                found.append(bias_gradient(dp[0]))
        return found

    # Small parts.

    def _constant_attention(self):
        """Where the weights of the attention are mere numbers.

        Their gradients come from `_contexts`.
        """
        return keras.StatelessScope(state_mapping=self.constants)

    def _drop(self, x, name, step):
        mask = step.get(name, self.repeated.get(name))
        return x if mask is None else x * ops.cast(mask, x.dtype)

    def _bounded(self, gradient):
        return bounded(gradient, self.cell.gradient_clip)

    def _positions(self, sequence):
        """The number of every step, (T,) or (T, B)."""
        if self.real_steps is not None:
            return ops.swapaxes(self.real_steps, 0, 1)
        return ops.arange(ops.shape(sequence)[0], dtype="int32")


def _constant(x):
    return None if x is None else ops.stop_gradient(x)
