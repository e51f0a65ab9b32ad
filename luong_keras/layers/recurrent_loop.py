"""A loop over time that compiles, with gradients, on every backend."""

import keras
from keras import backend, ops


def scan_states(one_step, states, projected, masks, mask):
    """Every state at every step, (B, T, U) each."""
    steps = ops.shape(projected)[1]
    xs = {"projected": projected}
    xs |= {name: ops.swapaxes(m, 0, 1) for name, m in masks.items()}
    if mask is not None:
        xs["mask"] = ops.expand_dims(mask, -1)
    position = ops.expand_dims(ops.arange(steps, dtype="int32"), -1)
    xs["position"] = ops.broadcast_to(
        position, (ops.shape(projected)[0], steps, 1)
    )
    widths = [x.shape[-1] or ops.shape(x)[-1] for x in xs.values()]
    packed = ops.concatenate(
        [ops.cast(x, projected.dtype) for x in xs.values()], axis=-1
    )

    def body(packed_step, old):
        step, start = {}, 0
        for name, width in zip(xs, widths, strict=True):
            step[name] = packed_step[:, start : start + width]
            start = start + width
        position = ops.cast(step.pop("position")[:, 0], "int32")
        new = one_step(old, step.pop("projected"), position, step)
        return _carried(new, old, step.get("mask"))

    cell = _LoopCell(
        body,
        [state.shape[-1] for state in states],
        backend.standardize_dtype(projected.dtype),
    )
    loop = keras.layers.RNN(
        cell, return_sequences=True, dtype=cell.compute_dtype
    )
    sequences = loop(packed, initial_state=list(states))
    return ops.split(sequences, len(states), axis=-1)


class _LoopCell:
    """A loop body as a cell of `keras.layers.RNN`, which has no weights.

    Keras' RNN is its only public loop that XLA compiles with gradients on
    every backend. What a step reads beside its states travels in one packed
    tensor; the states travel out side by side.
    """

    def __init__(self, body, state_size, compute_dtype):
        self.body = body
        self.state_size = state_size
        self.compute_dtype = compute_dtype
        self.output_size = sum(state_size)

    def call(self, inputs, states):
        new_states = self.body(inputs, list(states))
        return ops.concatenate(new_states, axis=-1), new_states

    __call__ = call


def _carried(new, old, mask):
    """New states where the step's mask is True, the old ones elsewhere."""
    if mask is None:
        return new
    keep = mask > 0
    return [ops.where(keep, n, o) for n, o in zip(new, old, strict=True)]
