"""A cell over all steps of a sequence.

Every step attends, or all T at once after the recurrence, since without input
feeding no step needs the attention of the one before. The backend
differentiates the loop, as exported models have it, or `ops.scan` does.
"""

from typing import Any, NamedTuple

import keras
from keras import backend, ops

from luong_keras.ops.loops import carried, split_masks
from luong_keras.ops.scan import scan


class Sequence(NamedTuple):
    """The sequence that a cell runs over.

    Attributes:
        inputs: (B, T, E).
        memory: (B, S, M) or None.
        memory_mask: boolean (B, S) or None.
        states: the cell's first states, (B, U) each.
        mask: boolean (B, T) or None; False carries the states over.
        positions: the number of every step, (B, T), from `step_numbers`.
        masks: dropout masks by name, (T or 1, B, ...).
        with_alignments: whether the alignments are wanted.
    """

    inputs: Any
    memory: Any
    memory_mask: Any
    states: list
    mask: Any
    positions: Any
    masks: dict
    with_alignments: bool


def run(cell, sequence, deferred):
    """The vectors h̃ (B, T, U), the alignments or None, and the last states.

    `deferred`: whether the gradients of the weights wait until the loop is
    over.
    """
    shared = cell.loop_weights(), cell.project_memory(sequence.memory)
    loop = _deferred_loop if deferred else _automatic_loop
    if cell.needs_context:
        return _attend_in_loop(loop, cell, sequence, shared)
    return _attend_behind_loop(loop, cell, sequence, shared)


def _attend_in_loop(loop, cell, sequence, shared):
    def step(shared, projected, states, position, masks):
        weights, memory = shared
        read = weights, projected, states, memory, sequence.memory_mask
        new_states, _ = cell.step(*read, position, masks)
        return new_states

    wanted = [len(sequence.states) - 1]
    if sequence.with_alignments:
        wanted.append(cell.top_index)
    (vectors, *top), last = loop(
        step, shared, sequence.states, wanted, cell, sequence
    )
    alignments = None
    if top:
        # One call for all T: nothing but states can leave a loop.
        first = cell.top_hidden(sequence.states)
        _, alignments = cell._context(
            cell.alignment_queries(*top, first),
            shared[1],
            sequence.memory_mask,
            sequence.positions,
            _swapped(sequence.masks.get("attention")),
        )
    return vectors, alignments, last


def _attend_behind_loop(loop, cell, sequence, shared):
    """The recurrence alone, then attention for all steps at once."""
    weights, memory = shared

    def step(weights, projected, states, position, masks):
        return cell.recur(weights, projected, states, masks)

    (top,), last = loop(
        step, weights, sequence.states[:-1], [cell.top_index], cell, sequence
    )
    vectors, alignments = cell.attend(
        weights,
        top,
        memory,
        sequence.memory_mask,
        sequence.positions,
        _swapped(sequence.masks.get("attention")),
    )
    return vectors, alignments, [*last, vectors[:, -1]]


def _deferred_loop(step, shared, states, wanted, cell, sequence):
    """The wanted states at all steps (B, T, U), and all of the last one."""
    projected, masks = _project_inputs(cell, sequence, time_first=True)
    repeated, xs = split_masks(masks)
    position = sequence.positions
    if position is None:
        position = ops.arange(ops.shape(projected)[0], dtype="int32")
    else:
        position = _swapped(position)

    def one_step(shared, old, projected, x):
        position = x.pop("position")
        return step(shared, projected, old, position, {**repeated, **x})

    last, sequences = scan(
        one_step,
        shared,
        states,
        projected,
        {"position": position, **xs},
        wanted,
        _swapped(sequence.mask),
        cell,
    )
    return [_swapped(x) for x in sequences], last


def _automatic_loop(step, shared, states, wanted, cell, sequence):
    """`_deferred_loop`, differentiated by the backend."""
    projected, masks = _project_inputs(cell, sequence)
    repeated, stepwise = split_masks(masks)

    def one_step(old, projected, position, masks):
        return step(shared, projected, old, position, {**repeated, **masks})

    sequences = _scan_states(one_step, states, projected, stepwise, sequence)
    last = [each[:, -1] for each in sequences]
    return [sequences[i] for i in wanted], last


def _project_inputs(cell, sequence, time_first=False):
    """Inputs' share of the gates, and the masks that are left.

    (B, T, ...), or (T, B, ...) with `time_first`.
    """
    masks = {k: v for k, v in sequence.masks.items() if k != "inputs"}
    dropped = sequence.masks.get("inputs")
    inputs = _swapped(sequence.inputs) if time_first else sequence.inputs
    if dropped is not None:
        dropped = dropped if time_first else _swapped(dropped)
        inputs = inputs * ops.cast(dropped, inputs.dtype)
    return cell.project_inputs(inputs), masks


def step_numbers(inputs, mask, start):
    """The number of every step, (B, T), which masked ones do not raise.

    `start` is that of the first one: an integer, an integer tensor () or
    (B,), or None for 0. None for 0 ... T - 1.
    """
    at_zero = start is None or (isinstance(start, int) and start == 0)
    if mask is None:
        if at_zero:
            return None
        batch, steps = ops.shape(inputs)[:2]
        numbers = ops.arange(steps, dtype="int32")
        numbers = ops.broadcast_to(numbers[None], (batch, steps))
    else:
        numbers = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    if not at_zero:
        numbers = numbers + ops.reshape(ops.cast(start, "int32"), (-1, 1))
    # Before the first real step there is none.
    return ops.maximum(numbers, 0)


def _swapped(x):
    """Time first where the batch was, and back; None stays None."""
    return None if x is None else ops.swapaxes(x, 0, 1)


def _scan_states(one_step, states, projected, masks, sequence):
    """Every state at every step, (B, T, U) each."""
    steps, mask = ops.shape(projected)[1], sequence.mask
    xs = {"projected": projected}
    xs |= {name: ops.swapaxes(m, 0, 1) for name, m in masks.items()}
    if mask is not None:
        xs["mask"] = ops.expand_dims(mask, -1)
    position = sequence.positions
    if position is None:
        position = ops.arange(steps, dtype="int32")
    xs["position"] = ops.broadcast_to(
        position, (ops.shape(projected)[0], steps)
    )[..., None]
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
        mask = step.get("mask")
        return carried(new, old, None if mask is None else mask[:, 0] > 0)

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
