"""Attention in a loop that is differentiated by running its steps again.

What a step computes of its query is an `Operation`, whose value is saved; what
it reads beside the query gets its gradient when the loop is over.
"""

import keras
from keras import ops

from luong_keras.layers.attention.attention_step import (
    GlobalStep,
    call_for_masks,
    dropped,
)
from luong_keras.ops import masking
from luong_keras.ops.deferred import Operation, current
from luong_keras.ops.vector_jacobian import vector_jacobians


class DeferredMemory(tuple):
    """A projected memory, (keys, values, value kernel), in such a loop.

    Attributes:
        attention: the `DeferredAttention` that reads it.
    """

    attention = None

    def context(self, query, position, dropout_mask):
        """The context (B, M) of a query (B, U), in at least float32."""
        return self.attention.context(self, query, position, dropout_mask)


class DeferredAttention:
    """An attention layer in such a loop.

    Args:
        attention: the layer, built.
        memory: [keys, values], (B, S, ...), mere numbers; a single tensor
            where they are the same, so that a window is gathered once.
        variables: the layer's weights.
        numbers: their values, mere numbers.
        places: those of memory and variables among the loop's parameters.
        mask: boolean (B, S) or None.
        all_steps: the `position` (B, T) and the `dropout_mask` (B, T, S) of
            all steps at once, each of them may be None.
    """

    def __init__(
        self, attention, memory, variables, numbers, places, mask, all_steps
    ):
        self.layer = attention
        self.memory = memory
        self.variables = variables
        self.numbers = numbers
        self.places = places
        self.mask = mask
        self.all_steps = all_steps
        self.step = attention.step(memory[0], memory[-1], mask)

    def context(self, memory, query, position, dropout_mask):
        """The context of one step, whose memory is a `DeferredMemory`."""
        if not (type(self.step) is GlobalStep and self.layer.score.by_entry):
            return current().apply(
                lambda: _Context(self),
                query,
                position=position,
                dropout_mask=dropout_mask,
            )
        step = self.layer.step(memory[0], self.memory[-1], self.mask)
        weights = dropped(step.weights(self.query(query)), dropout_mask)
        place = self.places[len(self.memory) - 1]
        return current().apply(
            lambda: _WeightedSum(self.memory[-1], place), weights
        )

    def query(self, x):
        """The query as the layer reads it."""
        return ops.cast(x, self.layer.compute_dtype)

    def weighing(self, numbers):
        """Where the layer's weights have these values."""
        pairs = zip(self.variables, numbers, strict=True)
        return keras.StatelessScope(state_mapping=list(pairs))


class _Context(Operation):
    """The context of a query.

    When the loop is over, every query is known, and one call for all of them
    gives the gradients of the memory and of the layer's weights.
    """

    def __init__(self, attention):
        self.attention = attention
        self.places = attention.places

    def value(self, x, **options):
        attention = self.attention
        with attention.weighing(attention.numbers):
            context, weights = attention.step.attend(
                attention.query(x), **options
            )
        return context, [weights]

    def input_gradient(self, d_value, x, kept, **options):
        attention = self.attention
        with attention.weighing(attention.numbers):
            return attention.step.query_gradient(
                d_value, attention.query(x), kept[0], **options
            )

    def parameter_gradients(self, x, d_value):
        attention = self.attention
        query = attention.query(ops.swapaxes(x, 0, 1))
        count = len(attention.memory)

        def contexts(*parameters):
            memory, numbers = parameters[:count], parameters[count:]
            with attention.weighing(numbers):
                context, _ = call_for_masks(
                    *(attention.layer, query, memory[0], memory[-1]),
                    attention.mask,
                    **attention.all_steps,
                )
            return [context], None

        found, _ = vector_jacobians(
            contexts,
            [*attention.memory, *attention.numbers],
            [ops.swapaxes(d_value, 0, 1)],
        )
        return found


class _WeightedSum(Operation):
    """The context of weights (B, S).

    For scores that compare every pair of vectors entry by entry: all steps
    at once would hold (B, T, S, A), so the steps differentiate these.
    """

    def __init__(self, values, place):
        self.values = values
        self.places = (place,)

    def value(self, x):
        return masking.widen(masking.rows_times(x, self.values)), []

    def input_gradient(self, d_value, x, kept):
        return masking.rows_dot(self.values, d_value)

    def parameter_gradients(self, x, d_value):
        weights = ops.transpose(x, (1, 2, 0))
        return [ops.matmul(weights, ops.swapaxes(d_value, 0, 1))]
