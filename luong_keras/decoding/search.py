"""The loop of every search, and the backtracking of its hypotheses.

The step function is described in `model_step.py`; `ModelStep` makes one of
a Keras model.

What chooses the words is a `DecodingStrategy` (`Greedy`, `Beam`, `Sampling`,
or your own); what changes the ranks of words and hypotheses
are `Scorer`s (`scorers.py`). The loop carries what both keep of a hypothesis.

Finished sentences leave the batch: when less than three quarters of its
sentences continue, the search keeps only those. Step, strategy and scorers
must be `PerSentence`s for that, which know what of theirs belongs to a
sentence; those of this library are. A plain function as a step, and a strategy
or scorer of your own that names nothing, keep the batch as it is. JAX, whose
shapes cannot depend on values, keeps it too.
"""

import copy
from typing import Any, NamedTuple

import keras
from keras import ops, tree

from luong_keras.decoding.argument_checks import (
    check_ids,
    check_kinds,
    check_rows,
    of_each_sentence,
    whole_number,
)
from luong_keras.decoding.model_step import (
    call_step,
    first_states,
    refuse_model,
)
from luong_keras.decoding.scorers import AllScorers, Scorer
from luong_keras.decoding.strategy import (
    DecodingStrategy,
    Hypotheses,
    StepState,
)
from luong_keras.decoding.top_words import gather_beams
from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import PerSentence, put_rows, take_rows
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

# A smaller share of sentences that continue leaves the others behind.
LEAST_SHARE = 0.75


def search(
    step,
    states,
    strategy: DecodingStrategy,
    max_lengths,
    max_steps,
    min_lengths=None,
    scorers=(),
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
) -> Hypotheses:
    """Translates B sentences.

    Args:
        step: a function of (ids, states, position) that returns logits (B,
            K, V), new states and attention weights (B, K, S), or None for
            them; `ModelStep(model)` where a Keras model decodes. K is 1 in
            the first step, then that of the strategy.
        states: its first states, a list or any nested structure of (B, ...),
            which the step gets as (B, K, ...); [] for none.
        strategy: what chooses the words.
        max_lengths: (B,) most symbols of each sentence, `</s>` counted.
        max_steps: the largest of them, the length of the result; a smaller
            number cuts longer translations, as `max_lengths` does.
        min_lengths: (B,) fewest words before `</s>` is allowed; 1 when None.
        scorers: `Scorer`s; what they add is summed, their ranks follow each
            other in the given order.
        bos_id: the id the decoder reads first.
        eos_id: the id that ends a sentence.
        pad_id: the id after the last word of the result.

    Returns:
        `Hypotheses`, the best first, as many as the strategy keeps.

    Raises:
        ValueError: for lengths that are not one of each sentence, a model
            that is no step function, a step that returns other shapes, an id
            outside the vocabulary, or a strategy or scorer that is none.

    Example:
    >>> import numpy as np
    >>> from luong_keras.decoding import Sampling
    >>> def coin(ids, states, position):
    ...     logits = np.log([[[0.5, 0.5, 1e-9]]]).repeat(ids.shape[1], 1)
    ...     return logits, states, np.ones((1, ids.shape[1], 1), "float32")
    >>> found = search(
    ...     coin, [np.zeros((1, 1))], Sampling(2, seeds=[1]), [4], 4, eos_id=2
    ... )
    >>> np.array(found.lengths).tolist()
    [[4, 4]]
    """
    refuse_model(step)
    scorers = check_search(strategy, scorers)
    given = tree.flatten(states)
    batch = given[0].shape[0] if given else None
    max_lengths = of_each_sentence("max_lengths", max_lengths, batch)
    if min_lengths is None:
        min_lengths = ops.ones_like(max_lengths)
    min_lengths = of_each_sentence("min_lengths", min_lengths, batch)
    max_steps = whole_number("max_steps", max_steps, least=0)
    max_lengths = ops.minimum(max_lengths, ops.cast(max_steps, "int32"))
    scorers = AllScorers(scorers)
    for each in (strategy, scorers):
        check_rows(each, max_lengths.shape[0])
    loop = _Loop(
        step,
        strategy,
        scorers,
        (min_lengths, max_lengths),
        max_steps,
        (bos_id, eos_id, pad_id),
    )
    return loop.run(states)


def check_search(strategy, scorers):
    """Checks the strategy and the scorers; returns the scorers as a list."""
    check_kinds("strategy=Beam(4)", DecodingStrategy, [strategy])
    return check_kinds("scorers=[NoRepeatedNgrams(3)]", Scorer, scorers)


class _Running(NamedTuple):
    """The state between two steps, (B, ...)."""

    words: Any
    scores: Any
    unfinished: Any
    strategy_state: Any
    scorer_states: Any
    states: Any

    @classmethod
    def after(cls, output, scorer_states, states):
        """The output of a step, for the next one."""
        words, _, scores, unfinished, strategy_state = output
        return cls(
            words, scores, unfinished, strategy_state, scorer_states, states
        )


class _Loop(PerSentence):
    """The arguments of one search, and its parts."""

    per_sentence = (
        "step",
        "strategy",
        "scorers",
        "min_lengths",
        "max_lengths",
        "places",
    )

    def __init__(self, step, strategy, scorers, limits, max_steps, special_ids):
        self.step = step
        self.strategy = strategy
        self.scorers = scorers
        self.min_lengths, self.max_lengths = limits
        self.max_steps = max_steps
        self.bos_id, self.eos_id, self.pad_id = special_ids
        # Of these sentences in the whole batch; None for all of it.
        self.places = None

    def run(self, states):
        running, weights = self._start(states)
        history = self._history(running.words, weights)
        first = ops.ones((), dtype="int32")
        run = self._in_rounds if self._shrinks else self._steps
        t, running, history = run(first, running, history)
        state = self._step_state(t, None, running)
        found = self.strategy.finalize(state, running.strategy_state)
        ids, alignments = follow_backpointers(
            history, found.slots, found.lengths, found.ends, t, self.pad_id
        )
        return Hypotheses(
            ids[..., : self.max_steps],
            found.lengths,
            found.ranking,
            alignments[..., : self.max_steps, :],
        )

    @property
    def _shrinks(self):
        return self.has_rows and keras.backend.backend() != "jax"

    def _in_rounds(self, t, running, history):
        """All steps, each with no more sentences than it takes.

        A round ends when too many of its sentences have.
        """
        batch = ops.shape(running.unfinished)[0]
        loop = copy.copy(self)
        loop.places = ops.arange(batch, dtype="int32")

        def body(t, running, history):
            (rows,) = ops.nonzero(running.unfinished)
            rows = ops.cast(rows, "int32")
            t, found, history = loop.take(rows)._steps(
                t, take_rows(running, rows), history
            )
            return t, put_rows(running, rows, found), history

        return ops.while_loop(self._continues, body, (t, running, history))

    def _continues(self, t, running, _):
        """Returns whether the loop continues.

        It ends when all sentences have finished. Where finished ones can leave
        the batch, it ends when enough of them have.
        """
        unfinished = running.unfinished
        inside = t < self.max_steps
        if self.places is None:
            return ops.logical_and(inside, ops.any(unfinished))
        share = ops.mean(ops.cast(unfinished, "float32"))
        return ops.logical_and(inside, share >= LEAST_SHARE)

    def _steps(self, t, running, history):
        return ops.while_loop(
            self._continues, self._advance, (t, running, history)
        )

    def _step_state(self, t, logits, running):
        return StepState(
            t,
            logits,
            running.scores,
            running.unfinished,
            self.min_lengths,
            self.max_lengths,
            self.scorers,
            running.scorer_states,
            self.eos_id,
            self.pad_id,
        )

    def _start(self, states):
        """Step 0: the only hypothesis, without a word, becomes K.

        Also returns the attention weights (B, K, S).
        """
        given = tree.flatten(states) or [self.max_lengths]
        batch, k = ops.shape(given[0])[0], self.strategy.num_hypotheses
        states = first_states(self.step, states, batch, self.max_steps)
        first = ops.full((batch, 1), self.bos_id, dtype="int32")
        logits, states, weights = call_step(self.step, first, states, 0)
        special_ids = (self.bos_id, self.eos_id, self.pad_id)
        check_ids(logits.shape[-1], special_ids)
        scorer_states = self.scorers.start(
            batch, ops.shape(weights)[-1], self.max_steps
        )
        scorer_states = self.scorers.attend(scorer_states, weights)
        scores = ops.zeros((batch, 1), dtype=masking.wider_dtype(logits.dtype))
        unfinished = self.max_lengths >= 1
        running = _Running(
            first, scores, unfinished, None, scorer_states, states
        )
        output = self.strategy.initialize(self._step_state(0, logits, running))
        scorer_states, states, weights = tree.map_structure(
            lambda x: ops.repeat(x, k, axis=1), (scorer_states, states, weights)
        )
        scorer_states = self.scorers.add(scorer_states, output.words, 0)
        return _Running.after(output, scorer_states, states), weights

    def _history(self, words, weights):
        """Room for what every step leaves, with that of step 0."""
        size = self.max_steps + 1
        batch, k = ops.shape(words)[0], self.strategy.num_hypotheses
        room = ops.zeros(
            (size, batch, k, ops.shape(weights)[-1]), dtype=weights.dtype
        )
        history = [ops.full((size, batch, k), self.pad_id, dtype="int32"), room]
        rows = [words, weights]
        if self.strategy.reorders:
            history.insert(1, ops.zeros((size, batch, k), dtype="int32"))
            rows.insert(1, ops.zeros_like(words))
        return write_rows(history, 0, rows)

    def _advance(self, t, running, history):
        """Step t: every live hypothesis has t words."""
        logits, states, weights = call_step(
            self.step, running.words, running.states, t
        )
        state = self._step_state(t, logits, running)
        active_mask = self.strategy.active_mask(state, running.strategy_state)
        scorer_states = self.scorers.attend(running.scorer_states, weights)
        scorer_states = self.scorers.where(
            active_mask, scorer_states, running.scorer_states
        )
        output = self.strategy.step(
            state._replace(scorer_states=scorer_states), running.strategy_state
        )
        rows = (output.words, weights)
        if self.strategy.reorders:
            states = gather_beams(states, output.parents)
            scorer_states = gather_beams(scorer_states, output.parents)
            rows = (output.words, output.parents, weights)
        added = self.scorers.add(scorer_states, output.words, t)
        scorer_states = self.scorers.where(active_mask, added, scorer_states)
        running = _Running.after(output, scorer_states, states)
        return t + 1, running, write_rows(history, t, rows, self.places)


def write_rows(buffers, t, rows, places=None):
    """Buffers (T, B, ...) with the rows (R, ...) of step t at `places` (R,).

    Without `places` R is B. The buffers keep their types; one without columns
    has no room, and TensorFlow would refuse to write nothing.
    """
    t = ops.convert_to_tensor(t, "int32")
    if places is None:
        index = ops.reshape(t, (1, 1))
        rows = [row[None] for row in rows]
    else:
        index = ops.stack([ops.zeros_like(places) + t, places], axis=-1)
    return tuple(
        buffer
        if buffer.shape[-1] == 0
        else ops.scatter_update(buffer, index, ops.cast(row, buffer.dtype))
        for buffer, row in zip(buffers, rows, strict=True)
    )


def follow_backpointers(history, parent, lengths, ends, steps, pad_id):
    """Words (B, N, T) and weights (B, N, T, S) along the parents.

    Args:
        history: the words, the parents and the weights of every step, (T, B,
            K, ...) each; without parents, each hypothesis stayed in its slot.
        parent: (B, N) the slot in which each hypothesis lived when it had
            `lengths` words.
        lengths: (B, N).
        ends: (B, N) the step that produced `</s>`, or -1.
        steps: how many there were.
        pad_id: the id after the last word.
    """
    words, *parents, weights = history
    size, batch, k = ops.shape(words)
    # slots[t]: where the hypothesis lived when it had t words.
    slots = ops.repeat(parent[None], size + 1, axis=0)
    if parents:
        slots = _slots(slots, parents[0], parent, lengths, steps)
    slots = ops.transpose(slots, (1, 2, 0))
    # From (T, B, K), of the slots and steps that each hypothesis has.
    times = ops.arange(size, dtype="int32")
    sentences = ops.arange(batch, dtype="int32")[:, None, None]
    first = (times * batch + sentences) * k
    inside = times < lengths[..., None]
    ids = ops.take(ops.reshape(words, (-1,)), first + slots[..., 1:])
    ids = ops.where(inside, ids, pad_id)
    # The weights of step t belong to the slots before its reordering.
    rows = ops.reshape(weights, (size * batch * k, ops.shape(weights)[-1]))
    alignments = ops.take(rows, first + slots[..., :-1], axis=0)
    wanted = inside | (times == ends[..., None])
    zero = ops.zeros((), alignments.dtype)
    return ids, ops.where(wanted[..., None], alignments, zero)


def _slots(slots, parents, last, lengths, steps):
    """`slots` (T + 1, B, N) with the places before the `last`."""

    def body(t, slot, slots):
        (before,) = gather_beams([parents[t]], slot)
        slot = ops.where(t < lengths, before, slot)
        (slots,) = write_rows((slots,), t, (slot,))
        return t - 1, slot, slots

    _, _, slots = ops.while_loop(
        lambda t, *_: t >= 0, body, (steps - 1, last, slots)
    )
    return slots
