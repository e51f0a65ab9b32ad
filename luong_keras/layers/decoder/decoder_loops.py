"""The ways to run a cell over all steps of a sequence.

Each takes the cell and the `Sequence` and returns the vectors h̃ (B, T, U), the
alignments (B, T, S) or None, and the last states. All give the same numbers;
`loop_of` chooses. They differ in whether every step attends, or all T at once
behind the loop, since without input feeding no step needs the attention of the
one before; and in how the loop is differentiated:

- automatically, as exported models have it, and where the others cannot be
  had (`has_deferred_loop`);
- by running its steps again, the gradients of the weights left to one product
  each, for any cell (`replayed_sequence`);
- by hand, to the same end, for the `InputFeedingLSTMCell`
  (`feeding_sequence`, `lstm_sequence`).
"""

import functools
from typing import Any, NamedTuple

import keras
from keras import activations, backend, ops

from luong_keras.layers.decoder.feeding_sequence import FeedingSequence
from luong_keras.layers.decoder.input_feeding_lstm_cell import (
    InputFeedingLSTMCell,
)
from luong_keras.layers.decoder.lstm_sequence import lstm_sequence
from luong_keras.layers.decoder.replayed_sequence import ReplayedSequence
from luong_keras.ops import time_loop
from luong_keras.ops.time_loop import carried, split_masks


class Sequence(NamedTuple):
    """What a cell runs over.

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


def has_deferred_loop(cell):
    """Whether a cell has a loop that leaves weights' gradients for later."""
    if backend.backend() not in time_loop.BACKENDS:
        return False
    # A step that runs again reads its weights as they are kept: it is not
    # within the call that rounds them.
    one_precision = cell.compute_dtype == cell.variable_dtype
    runs_again = one_precision and backend.backend() != "torch"
    return _is_by_hand(cell) or runs_again


def _is_by_hand(cell):
    return type(cell) is InputFeedingLSTMCell and (
        cell.attentional_activation in (activations.tanh, activations.linear)
    )


def loop_of(cell, deferred):
    """The function of a cell and a `Sequence` that runs them.

    `deferred`: whether the gradients of the weights wait until the loop is
    over.
    """
    by_hand = _is_by_hand(cell)
    if cell.needs_context:
        if not deferred:
            return attend_in_loop
        return attend_in_loop_by_hand if by_hand else attend_in_replayed_loop
    recur = _recurrence
    if deferred:
        recur = _recurrence_by_hand if by_hand else _replayed_recurrence
    return functools.partial(_attend_behind_loop, recur)


def attend_in_loop(cell, sequence):
    """Every step attends; differentiated automatically."""
    projected, masks = _project_inputs(cell, sequence)
    weights = cell.loop_weights()
    projected_memory = cell.project_memory(sequence.memory)
    repeated, stepwise = split_masks(masks)

    def one_step(old, projected, position, masks):
        new, _ = cell.step(
            weights,
            projected,
            old,
            projected_memory,
            sequence.memory_mask,
            position,
            {**repeated, **masks},
        )
        return new

    sequences = _scan_states(
        one_step, sequence.states, projected, stepwise, sequence
    )
    top = cell.top_hidden(sequences)
    return (
        sequences[-1],
        _alignments(cell, sequence, projected_memory, top),
        [each[:, -1] for each in sequences],
    )


def attend_in_loop_by_hand(cell, sequence):
    """Every step attends; the gradients of the weights are left for later."""
    projected, masks = _project_inputs(cell, sequence, time_first=True)
    projected_memory = cell.project_memory(sequence.memory)
    run = _run_of(FeedingSequence, cell, sequence, projected_memory, masks)
    vectors, top, last = run.run(
        projected, sequence.states, with_top=sequence.with_alignments
    )
    alignments = _alignments(cell, sequence, projected_memory, _swapped(top))
    return _swapped(vectors), alignments, last


def attend_in_replayed_loop(cell, sequence):
    """Every step attends, and runs again to be differentiated."""
    projected, masks = _project_inputs(cell, sequence, time_first=True)
    projected_memory = cell.project_memory(sequence.memory)
    wanted = [len(sequence.states) - 1]
    if sequence.with_alignments:
        wanted.append(cell.top_index)
    run = _run_of(ReplayedSequence, cell, sequence, projected_memory, masks)
    last, (vectors, *top) = run.attend(projected, sequence.states, wanted)
    top = _swapped(top[0]) if top else None
    alignments = _alignments(cell, sequence, projected_memory, top)
    return _swapped(vectors), alignments, last


def _run_of(kind, cell, sequence, projected_memory, masks):
    """A `FeedingSequence` or a `ReplayedSequence` over all that attends."""
    return kind(
        cell,
        projected_memory,
        sequence.memory_mask,
        _swapped(sequence.mask),
        masks,
        sequence.positions,
    )


def _attend_behind_loop(recur, cell, sequence):
    """The recurrence alone, then attention for all steps at once."""
    top, last = recur(cell, sequence)
    vectors, alignments = cell.attend(
        cell.loop_weights(),
        top,
        cell.project_memory(sequence.memory),
        sequence.memory_mask,
        sequence.positions,
        _swapped(sequence.masks.get("attention")),
    )
    return vectors, alignments, [*last, vectors[:, -1]]


def _recurrence(cell, sequence):
    """H of the top layer (B, T, U) and the last states of all layers."""
    projected, masks = _project_inputs(cell, sequence)
    weights = cell.loop_weights()
    repeated, stepwise = split_masks(masks)

    def one_step(old, projected, position, masks):
        del position  # the recurrence alone is the same at every step
        return cell.recur(weights, projected, old, {**repeated, **masks})

    sequences = _scan_states(
        one_step, sequence.states[:-1], projected, stepwise, sequence
    )
    return cell.top_hidden(sequences), [each[:, -1] for each in sequences]


def _replayed_recurrence(cell, sequence):
    """`_recurrence` whose steps run again to be differentiated."""
    projected, masks = _project_inputs(cell, sequence, time_first=True)
    mask = _swapped(sequence.mask)
    last, (top,) = ReplayedSequence(cell, None, None, mask, masks).recur(
        projected, sequence.states[:-1], [cell.top_index]
    )
    return _swapped(top), last


def _recurrence_by_hand(cell, sequence):
    """`_recurrence` layer by layer: each is projected for all steps."""
    projected, masks = _project_inputs(cell, sequence, time_first=True)
    weights = cell.loop_weights()
    hidden, last = None, []
    for layer in range(cell.num_layers):
        if layer > 0:
            projected = cell.project_below(weights, layer, hidden, masks)
        hidden, *states = lstm_sequence(
            projected,
            *sequence.states[2 * layer : 2 * layer + 2],
            weights["recurrent_kernels"][layer],
            _swapped(sequence.mask),
            cell.cell_clip,
            cell.gradient_clip,
        )
        last += states
    return _swapped(hidden), last


def _alignments(cell, sequence, projected_memory, top):
    """One call for all T: nothing but states can leave a loop."""
    if not sequence.with_alignments:
        return None
    first = cell.top_hidden(sequence.states)
    _, alignments = cell._context(
        cell.alignment_queries(top, first),
        projected_memory,
        sequence.memory_mask,
        sequence.positions,
        _swapped(sequence.masks.get("attention")),
    )
    return alignments


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
