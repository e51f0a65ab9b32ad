"""The search loop of all strategies, and the backtracking of its hypotheses.

`model_step.py` describes the step function; `ModelStep` makes one from a
Keras model.

A `DecodingStrategy` chooses the words (`Greedy`, `Beam`, `Sampling`, or a
user-defined one). `Scorer`s (`scorers.py`) change the ranks of words and
hypotheses. The loop carries the states of both.

Finished sentences leave the batch: when less than three quarters of its
sentences continue, the search keeps only those. For that, step, strategy and
scorers must be `PerSentence`s, which name their attributes that have one row
per sentence; all classes of this library do. With a plain function as a step,
or with a user-defined strategy or scorer that names nothing, the batch keeps
its size. It also keeps it on JAX, where shapes cannot depend on values.
"""

import copy

import keras
from keras import ops, tree

from luong_keras.decoding.argument_checks import (
    check_kinds,
    check_lengths,
    check_rows,
    check_words,
    resolve_max_steps,
)
from luong_keras.decoding.model_step import (
    call_step,
    check_step_function,
    first_states,
)
from luong_keras.decoding.scorers import AllScorers, Scorer
from luong_keras.decoding.strategy import (
    DecodingStrategy,
    Hypotheses,
    StepOutput,
    StepState,
)
from luong_keras.decoding.top_words import gather_beams
from luong_keras.ops import backends, masking
from luong_keras.ops.batch_compaction import PerSentence, put_rows, take_rows
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

# The batch is compacted when fewer sentences than this share continue.
LEAST_SHARE = 0.75


def search(
    step,
    states,
    strategy: DecodingStrategy,
    max_lengths,
    max_steps=None,
    *,
    min_lengths=None,
    scorers=(),
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
) -> Hypotheses:
    """Translate B sentences.

    Args:
        step: Function of (ids, states, position) that returns logits (B, K,
            V), new states and attention weights (B, K, S), or None instead
            of the weights; `ModelStep(model)` for a Keras model. K is 1 in
            the first step, then the K of the strategy.
        states: List or any nested structure of (B, ...), the first states,
            which the step receives as (B, K, ...); [] for none.
        strategy: `DecodingStrategy` that chooses the words.
        max_lengths: Maximum number of symbols, including `</s>`: a number, or
            one per sentence, (B,).
        max_steps: The length of the result; the largest of `max_lengths` when
            None. A smaller number cuts longer translations. It must be given
            in a function that JAX compiles, if `max_lengths` are not constant.
        min_lengths: Minimum number of words before `</s>`, likewise a number
            or (B,); 1 when None.
        scorers: `Scorer`s; their bonuses are summed, and they change the
            ranks of hypotheses in the given order.
        bos_id: The id that the decoder reads first; the step must accept it.
        eos_id: The id that ends a sentence.
        pad_id: The id after the last word of the result.

    Returns:
        `Hypotheses`, the best first, as many as the strategy returns.

    Raises:
        ValueError: For lengths of another shape, a model instead of a step
            function, a step that returns other shapes, an id outside the
            vocabulary, or a strategy or scorer of another type.

    Example:
    >>> import numpy as np
    >>> from luong_keras.decoding import Sampling
    >>> def coin(ids, states, position):
    ...     logits = np.log([[[0.5, 0.5, 1e-9]]]).repeat(ids.shape[1], 1)
    ...     return logits, states, np.ones((1, ids.shape[1], 1), "float32")
    >>> hypotheses = search(
    ...     coin, [np.zeros((1, 1))], Sampling(2, seeds=[1]), 4, eos_id=2
    ... )
    >>> np.array(hypotheses.lengths).tolist()
    [[4, 4]]
    """
    check_step_function(step)
    scorers = check_search(strategy, scorers)
    tensors = tree.flatten(states)
    batch = tensors[0].shape[0] if tensors else None
    rows = next(
        iter(tensors or tree.flatten(getattr(step, "constants", ()))), None
    )
    given_lengths = max_lengths
    max_lengths = check_lengths("max_lengths", max_lengths, batch, rows)
    if min_lengths is None:
        min_lengths = ops.ones_like(max_lengths)
    min_lengths = check_lengths("min_lengths", min_lengths, batch, rows)
    max_steps = resolve_max_steps(max_steps, given_lengths)
    max_lengths = ops.clip(max_lengths, 0, ops.cast(max_steps, "int32"))
    if max_lengths.shape[0] == 0:
        raise ValueError(
            "Expected: at least one sentence. Received: a batch of none, "
            "`max_lengths` of shape (0,). Leave out the search of such a batch."
        )
    scorers = AllScorers(scorers)
    for owner in (strategy, scorers):
        check_rows(owner, max_lengths.shape[0])
    loop = _SearchLoop(
        step,
        strategy,
        scorers,
        (min_lengths, max_lengths),
        max_steps,
        (bos_id, eos_id, pad_id),
    )
    return loop.run(states)


def check_search(strategy, scorers):
    """Check the strategy and the scorers; return the scorers as a list."""
    check_kinds("strategy=Beam(4)", DecodingStrategy, [strategy])
    return check_kinds("scorers=[NoRepeatedNgrams(3)]", Scorer, scorers)


class _SearchLoop(PerSentence):
    """The loop of one search, with its arguments."""

    per_sentence = (
        "step",
        "strategy",
        "scorers",
        "min_lengths",
        "max_lengths",
        "indices",
    )

    def __init__(self, step, strategy, scorers, limits, max_steps, special_ids):
        self.step = step
        self.strategy = strategy
        self.scorers = scorers
        self.min_lengths, self.max_lengths = limits
        self.max_steps = max_steps
        self.bos_id, self.eos_id, self.pad_id = special_ids
        # Indices of the sentences in the whole batch; None for all.
        self.indices = None

    def run(self, states):
        output, carried, weights = self._run_first_step(states)
        history = self._make_history(output.words, weights)
        first = ops.ones((), dtype="int32")
        can_shrink = self.has_rows and keras.backend.backend() != "jax"
        run = self._run_rounds if can_shrink else self._run_steps
        t, output, (_, scorer_states), history = run(
            first, output, carried, history
        )
        state = self._make_step_state(t, None, scorer_states, output)
        final = self.strategy.finalize(state, output.strategy_state)
        ids, alignments = follow_backpointers(
            history, final.slots, final.lengths, final.ends, t, self.pad_id
        )
        return Hypotheses(
            ids[..., : self.max_steps],
            final.lengths,
            final.ranking,
            alignments[..., : self.max_steps, :],
        )

    def _run_rounds(self, t, output, carried, history):
        """Run all steps in rounds, each only with unfinished sentences.

        A round ends when fewer than three quarters of them are unfinished.
        """
        batch = ops.shape(output.unfinished)[0]
        loop = copy.copy(self)
        loop.indices = ops.arange(batch, dtype="int32")

        def body(t, output, carried, history):
            (rows,) = ops.nonzero(output.unfinished)
            rows = ops.cast(rows, "int32")
            whole = output, carried
            t, *part, history = loop.take(rows)._run_steps(
                t, *take_rows(whole, rows), history
            )
            return t, *put_rows(whole, rows, tuple(part)), history

        return ops.while_loop(
            self._continues, body, (t, output, carried, history)
        )

    def _continues(self, t, output, *_):
        """Test whether the loop continues.

        It ends when all sentences have finished. If finished sentences can
        leave the batch, a round ends when enough of them have finished.
        """
        unfinished = output.unfinished
        inside = t < self.max_steps
        if self.indices is None:
            return ops.logical_and(inside, ops.any(unfinished))
        share = ops.mean(ops.cast(unfinished, "float32"))
        return ops.logical_and(inside, share >= LEAST_SHARE)

    def _run_steps(self, *loop_state):
        return ops.while_loop(self._continues, self._advance, loop_state)

    def _make_step_state(self, t, logits, scorer_states, output):
        return StepState(
            position=t,
            logits=logits,
            scores=output.scores,
            unfinished=output.unfinished,
            min_lengths=self.min_lengths,
            max_lengths=self.max_lengths,
            scorers=self.scorers,
            scorer_states=scorer_states,
            eos_id=self.eos_id,
            pad_id=self.pad_id,
        )

    def _run_first_step(self, states):
        """Run step 0, which expands the empty hypothesis to K hypotheses.

        Returns the output of the strategy, the states of the step and of the
        scorers, and the attention weights (B, K, S).
        """
        tensors = tree.flatten(states) or [self.max_lengths]
        batch, k = ops.shape(tensors[0])[0], self.strategy.num_hypotheses
        states = first_states(self.step, states, batch, self.max_steps)
        first_ids = ops.full((batch, 1), self.bos_id, dtype="int32")
        logits, states, weights = call_step(self.step, first_ids, states, 0)
        for name in ("bos_id", "eos_id", "pad_id"):
            check_words(name, [getattr(self, name)], 1, logits.shape[-1])
        scorer_states = self.scorers.start(
            batch, ops.shape(weights)[-1], self.max_steps
        )
        scorer_states = self.scorers.attend(scorer_states, weights)
        scores = ops.zeros((batch, 1), dtype=masking.wider_dtype(logits.dtype))
        empty = StepOutput(first_ids, (), scores, self.max_lengths >= 1, ())
        output = self.strategy.initialize(
            self._make_step_state(0, logits, scorer_states, empty)
        )
        # K copies along axis 1, in fewer operations than `ops.repeat`.
        scorer_states, states, weights = gather_beams(
            (scorer_states, states, weights), ops.zeros((batch, k), "int32")
        )
        scorer_states = self.scorers.add(scorer_states, output.words, 0)
        return output._replace(parents=()), (states, scorer_states), weights

    def _make_history(self, words, weights):
        """Allocate the buffers for the results of all steps; write step 0."""
        rows = [ops.cast(words, "int32"), weights]
        if self.strategy.reorders:
            rows.insert(1, ops.zeros_like(rows[0]))
        size = self.max_steps + 1
        history = [
            ops.zeros((size, *ops.shape(row)), dtype=row.dtype) for row in rows
        ]
        return write_rows(history, 0, rows)

    def _advance(self, t, output, carried, history):
        """Run step t, in which each live hypothesis has t words.

        `carried` are the states of the step and those of the scorers.
        """
        states, scorer_states = carried
        logits, states, weights = call_step(self.step, output.words, states, t)
        state = self._make_step_state(t, logits, scorer_states, output)
        active_mask = self.strategy.active_mask(state, output.strategy_state)
        attended = self.scorers.attend(scorer_states, weights)
        scorer_states = where_active(active_mask, attended, scorer_states)
        output = self.strategy.step(
            state._replace(scorer_states=scorer_states), output.strategy_state
        )
        rows = [output.words, weights]
        if self.strategy.reorders:
            states, scorer_states = gather_beams(
                (states, scorer_states), output.parents
            )
            rows.insert(1, output.parents)
        added = self.scorers.add(scorer_states, output.words, t)
        scorer_states = where_active(active_mask, added, scorer_states)
        history = write_rows(history, t, rows, self.indices)
        carried = states, scorer_states
        return t + 1, output._replace(parents=()), carried, history


def where_active(active_mask, states, previous):
    """Take new states where the mask (B, 1) or (B, K) is set, else old."""

    def choose(new, old):
        mask = active_mask[(..., *[None] * (len(new.shape) - 2))]
        return ops.where(mask, new, old)

    return tree.map_structure(choose, states, previous)


def write_rows(buffers, t, rows, indices=None):
    """Write rows (R, ...) of step t into buffers (T, B, ...) at `indices` (R,).

    Without `indices` R is B. The buffers keep their dtypes. A buffer without
    columns is returned unchanged: TensorFlow refuses to write empty rows.
    """
    t = ops.convert_to_tensor(t, "int32")
    if indices is None:
        index = ops.reshape(t, (1, 1))
        rows = [row[None] for row in rows]
    else:
        index = ops.stack([ops.zeros_like(indices) + t, indices], axis=-1)
    return tuple(
        buffer
        if buffer.shape[-1] == 0
        else ops.scatter_update(buffer, index, ops.cast(row, buffer.dtype))
        for buffer, row in zip(buffers, rows, strict=True)
    )


def follow_backpointers(history, last_slots, lengths, ends, steps, pad_id):
    """Return words (B, N, T) and weights (B, N, T, S) along the parents.

    Args:
        history: The words, the parents and the weights of all steps, (T, B,
            K, ...) each; without parents, each hypothesis stayed in its slot.
        last_slots: (B, N) slot of each hypothesis when it had `lengths` words.
        lengths: (B, N) number of words.
        ends: (B, N) step that produced `</s>`, or -1.
        steps: Number of steps.
        pad_id: The id after the last word.
    """
    words, *parents, weights = history
    size, batch, k = ops.shape(words)
    # slots[t]: the slot of the hypothesis when it had t words.
    slots = ops.repeat(last_slots[None], size + 1, axis=0)
    if parents:
        slots = _trace_slots(slots, parents[0], last_slots, lengths, steps)
    slots = ops.transpose(slots, (1, 2, 0))
    # Take from (T, B, K) the slots and steps of each hypothesis.
    positions = ops.arange(size, dtype="int32")
    sentences = ops.arange(batch, dtype="int32")[:, None, None]
    first = (positions * batch + sentences) * k
    inside = positions < lengths[..., None]
    ids = backends.rows(ops.reshape(words, (-1,)), first + slots[..., 1:])
    ids = ops.where(inside, ids, pad_id)
    # The weights of step t belong to the slots before step t reorders them.
    rows = ops.reshape(weights, (size * batch * k, ops.shape(weights)[-1]))
    alignments = backends.rows(rows, first + slots[..., :-1])
    has_weights = inside | (positions == ends[..., None])
    zero = ops.zeros((), alignments.dtype)
    return ids, ops.where(has_weights[..., None], alignments, zero)


def _trace_slots(slots, parents, last_slots, lengths, steps):
    """Fill `slots` (T + 1, B, N) with the slots that precede the last ones."""

    def body(t, slot, slots):
        before = gather_beams(parents[t], slot)
        slot = ops.where(t < lengths, before, slot)
        (slots,) = write_rows((slots,), t, (slot,))
        return t - 1, slot, slots

    _, _, slots = ops.while_loop(
        lambda t, *_: t >= 0, body, (steps - 1, last_slots, slots)
    )
    return slots
