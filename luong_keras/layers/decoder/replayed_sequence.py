"""A cell over all steps of a sequence, its steps run again on the way back."""

import keras
from keras import ops, tree

from luong_keras.layers.attention.deferred_attention import (
    DeferredAttention,
    DeferredMemory,
)
from luong_keras.ops.replayed_loop import replayed_loop
from luong_keras.ops.time_loop import carried, split_masks


class ReplayedSequence:
    """One run of any cell over all steps of a sequence.

    Args: those of `FeedingSequence`, for any `InputFeedingCell`;
    `projected_memory` is None where the steps do not attend.
    """

    def __init__(
        self, cell, projected_memory, memory_mask, mask, masks, real_steps=None
    ):
        self.cell = cell
        self.memory_mask = memory_mask
        self.masks = masks
        self.real_steps = real_steps
        self.repeated, self.steps = split_masks(masks)
        if mask is not None:
            self.steps["mask"] = mask
        self.variables = cell.trainable_variables
        self.parameters = _Parameters(
            [
                cell.loop_weights(),
                projected_memory,
                [variable.value for variable in self.variables],
            ]
        )
        self.attention = None
        if projected_memory is not None:
            self.attention = self._deferred_attention()

    def attend(self, projected, states, outputs):
        """Whole steps over projected (T, B, ...), from all states.

        Returns the last states, and those numbered by `outputs` at all steps.
        """

        def one_step(weights, memory, old, projected, position, masks):
            new, _ = self.cell.step(
                *(weights, projected, old, memory),
                *(self.memory_mask, position, masks),
            )
            return new

        return self._run(one_step, projected, states, outputs)

    def recur(self, projected, states, outputs):
        """The same of the recurrent layers alone, which have no vector."""

        def one_step(weights, memory, old, projected, position, masks):
            del memory, position  # those of the attention
            return self.cell.recur(weights, projected, old, masks)

        return self._run(one_step, projected, states, outputs)

    def _run(self, one_step, projected, states, outputs):
        def step(parameters, old, projected, x):
            weights, memory, values = self.parameters.packed(parameters)
            position, mask = x.pop("position"), x.pop("mask", None)
            if memory is not None:
                memory = DeferredMemory(memory)
                memory.attention = self.attention
            pairs = list(zip(self.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                new = one_step(
                    *(weights, memory, old, projected, position),
                    {**self.repeated, **x},
                )
            return carried(new, old, mask)

        return replayed_loop(
            step,
            self.parameters.tensors,
            states,
            projected,
            {"position": self._positions(projected), **self.steps},
            outputs,
        )

    def _deferred_attention(self):
        """The cell's attention over parameters that are mere numbers."""
        attention = self.cell.attention
        held = [ops.stop_gradient(x) for x in self.parameters.tensors]
        _, (*memory, _), places = self.parameters.packed(range(len(held)))
        memory = list(dict.fromkeys(memory))
        own = {id(variable) for variable in attention.trainable_variables}
        mine = [i for i, v in enumerate(self.variables) if id(v) in own]
        dropout_mask = self.masks.get("attention")
        if dropout_mask is not None:
            dropout_mask = ops.swapaxes(dropout_mask, 0, 1)
        return DeferredAttention(
            attention,
            [held[place] for place in memory],
            [self.variables[i] for i in mine],
            [held[places[i]] for i in mine],
            [*memory, *(places[i] for i in mine)],
            self.memory_mask,
            {"position": self.real_steps, "dropout_mask": dropout_mask},
        )

    def _positions(self, sequence):
        """The number of every step, (T,) or (T, B)."""
        if self.real_steps is not None:
            return ops.swapaxes(self.real_steps, 0, 1)
        return ops.arange(ops.shape(sequence)[0], dtype="int32")


class _Parameters:
    """Tensors of a structure, each one once in a list."""

    def __init__(self, structure):
        self.structure = structure
        leaves = tree.flatten(structure)
        found = {id(x): x for x in leaves if x is not None}
        self.tensors = list(found.values())
        order = {each: place for place, each in enumerate(found)}
        self.places = [order.get(id(x)) for x in leaves]

    def packed(self, tensors):
        """The structure with these in the place of its own tensors."""
        return tree.pack_sequence_as(
            self.structure,
            [None if i is None else tensors[i] for i in self.places],
        )
