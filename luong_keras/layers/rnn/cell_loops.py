"""Loops that run a cell over all steps of a sequence.

Each step attends if the recurrence depends on attention. Otherwise one call
attends for all T steps after the recurrence. Either the backend differentiates
the loop, as in exported models, or `ops.scan` does.
"""

import functools
from typing import Any, NamedTuple

from keras import ops

from luong_keras.ops.loops import carried, split_masks, stacking_loop
from luong_keras.ops.scan import scan


class Sequence(NamedTuple):
    """The sequence that a cell runs over.

    Attributes:
        inputs: (B, T, E).
        memory: (B, S, M) or None.
        memory_mask: boolean (B, S) or None.
        states: list of (B, U), the cell's initial states.
        mask: boolean (B, T) or None; False carries the states over.
        positions: (B, T) int step numbers from `step_numbers`, or None.
        masks: dict of dropout masks by name, (T or 1, B, ...).
        with_alignments: whether the caller needs the alignments.
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
    """Return the vectors h̃ (B, T, U), alignments or None, and last states.

    `deferred`: whether the gradients of the weights are computed after the
    loop.
    """
    shared = cell.loop_weights(), cell.project_memory(sequence.memory)
    loop = functools.partial(_loop, deferred=deferred)
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
        # One call attends for all T: only states can leave the loop.
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
    """Run the recurrence, then attend for all steps at once."""
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


def _loop(step, shared, states, wanted, cell, sequence, deferred):
    """Return the wanted states of all steps (B, T, U), and the last states."""
    projected, repeated, xs = _prepare(cell, sequence)
    mask = _swapped(sequence.mask)

    def one_step(shared, old, projected, x):
        position = x.pop("position")
        return step(shared, projected, old, position, {**repeated, **x})

    if deferred:
        last, sequences = scan(
            one_step, shared, states, projected, xs, wanted, mask, cell
        )
        return [_swapped(x) for x in sequences], last

    def body(old, x):
        x = dict(x)
        mask = x.pop("mask", None)
        new = one_step(shared, old, x.pop("input"), x)
        new = carried(new, old, mask)
        return new, [new[i] for i in wanted], []

    xs["input"] = projected
    if mask is not None:
        xs["mask"] = mask
    last, sequences, _ = stacking_loop(body, states, xs, len(wanted))
    return [_swapped(x) for x in sequences], list(last)


def _prepare(cell, sequence):
    """Prepare the inputs of the steps, time first.

    Returns:
        The inputs' share of the gates (T, B, ...); the masks that all steps
        share; the other masks and the positions, one per step.
    """
    masks = dict(sequence.masks)
    inputs, dropped = _swapped(sequence.inputs), masks.pop("inputs", None)
    if dropped is not None:
        inputs = inputs * ops.cast(dropped, inputs.dtype)
    projected = cell.project_inputs(inputs)
    repeated, xs = split_masks(masks)
    position = _swapped(sequence.positions)
    if position is None:
        position = ops.arange(ops.shape(projected)[0], dtype="int32")
    return projected, repeated, {**xs, "position": position}


def step_numbers(inputs, mask, start):
    """Return the step numbers (B, T), or None if they are 0 ... T - 1.

    Masked steps are not counted. `start` is the number of the first step: an
    integer, an integer tensor () or (B,), or None for 0.
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
    # Masked steps before the first real step would get -1 from a start of 0.
    return ops.maximum(numbers, 0)


def _swapped(x):
    """Swap the batch and time axes; None stays None."""
    return None if x is None else ops.swapaxes(x, 0, 1)
