"""Loops that run a cell over all steps of a sequence.

Each step attends if the recurrence depends on attention. Otherwise one call
attends for all T steps after the recurrence.
"""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.ops.scan import scan


class CellSequence(NamedTuple):
    """The sequence that a cell runs over.

    Attributes:
        inputs: (B, T, E).
        memory: (B, S, M) or None.
        memory_mask: Boolean (B, S) or None.
        states: List of (B, U), the cell's initial states.
        mask: Boolean (B, T) or None; False carries the states over.
        positions: (B, T) int step numbers from `step_numbers`, or None.
        dropout_masks: Dict of dropout masks by name, (T or 1, B, ...).
        with_alignments: Whether the caller needs the alignments.
        deferred: As in `ops.scan`.
    """

    inputs: Any
    memory: Any
    memory_mask: Any
    states: list
    mask: Any
    positions: Any
    dropout_masks: dict
    with_alignments: bool
    deferred: bool


def run(cell, sequence):
    """Return the vectors h̃ (B, T, U), alignments or None, and last states."""
    shared = cell.loop_weights(), cell.project_memory(sequence.memory)
    if cell.attends_in_loop:
        return _attend_in_loop(cell, sequence, shared)
    return _attend_after_loop(cell, sequence, shared)


def _attend_in_loop(cell, sequence, shared):
    def step(shared, projected, states, position, dropout_masks):
        weights, projected_memory = shared
        new_states, _ = cell.step(
            weights,
            projected,
            states,
            projected_memory,
            sequence.memory_mask,
            position,
            dropout_masks,
        )
        return new_states

    output_indices = [len(sequence.states) - 1]
    if sequence.with_alignments:
        output_indices.append(cell.top_index)
    (vectors, *top_states), last_states = _run_loop(
        step, shared, sequence.states, output_indices, cell, sequence
    )
    alignments = None
    if top_states:
        # One call attends for all T: only states can leave the loop.
        first = cell.top_hidden(sequence.states)
        _, alignments = cell.attend_projected(
            cell.alignment_queries(*top_states, first),
            shared[1],
            sequence.memory_mask,
            sequence.positions,
            _swap_time(sequence.dropout_masks.get("attention")),
        )
    return vectors, alignments, last_states


def _attend_after_loop(cell, sequence, shared):
    """Run the recurrence, then attend for all steps at once."""
    weights, projected_memory = shared

    def step(weights, projected, states, position, dropout_masks):
        return cell.run_layers(weights, projected, states, dropout_masks)

    (top_states,), last_states = _run_loop(
        step, weights, sequence.states[:-1], [cell.top_index], cell, sequence
    )
    vectors, alignments = cell.attend(
        weights,
        top_states,
        projected_memory,
        sequence.memory_mask,
        sequence.positions,
        _swap_time(sequence.dropout_masks.get("attention")),
    )
    return vectors, alignments, [*last_states, vectors[:, -1]]


def _run_loop(step, shared, states, output_indices, cell, sequence):
    """Return the states at `output_indices`, (B, T, U), and the last states."""
    projected, repeated, xs = _prepare_inputs(cell, sequence)

    def one_step(shared, previous, projected, x):
        position = x.pop("position")
        return step(shared, projected, previous, position, {**repeated, **x})

    last_states, sequences = scan(
        one_step,
        shared,
        states,
        projected,
        xs,
        output_indices,
        mask=_swap_time(sequence.mask),
        layer=cell,
        deferred=sequence.deferred,
    )
    return [_swap_time(x) for x in sequences], last_states


def _prepare_inputs(cell, sequence):
    """Prepare the inputs of the steps, time first.

    Returns:
        The inputs' contribution to the gates (T, B, ...); the masks that all
        steps share; the other masks and the positions, one per step.
    """
    masks = dict(sequence.dropout_masks)
    inputs = _swap_time(sequence.inputs)
    dropout_mask = masks.pop("inputs", None)
    if dropout_mask is not None:
        inputs = inputs * ops.cast(dropout_mask, inputs.dtype)
    projected = cell.project_inputs(inputs)
    repeated = {name: m[0] for name, m in masks.items() if m.shape[0] == 1}
    xs = {name: m for name, m in masks.items() if name not in repeated}
    position = _swap_time(sequence.positions)
    if position is None:
        position = ops.arange(0, ops.shape(projected)[0], dtype="int32")
    return projected, repeated, {**xs, "position": position}


def step_numbers(inputs, mask, start):
    """Return the step numbers (B, T), or None if they are 0 ... T - 1.

    Masked steps are not counted. `start` is the number of the first step: an
    integer, an integer tensor () or (B,), or None for 0.
    """
    starts_at_zero = start is None or (isinstance(start, int) and start == 0)
    if mask is None:
        if starts_at_zero:
            return None
        batch, steps = ops.shape(inputs)[:2]
        numbers = ops.arange(0, steps, dtype="int32")
        numbers = ops.broadcast_to(numbers[None], (batch, steps))
    else:
        numbers = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    if not starts_at_zero:
        numbers = numbers + ops.reshape(ops.cast(start, "int32"), (-1, 1))
    # Masked steps before the first real step would get -1 from a start of 0.
    return ops.maximum(numbers, 0)


def _swap_time(x):
    """Swap the batch and time axes; None stays None."""
    return None if x is None else ops.swapaxes(x, 0, 1)
