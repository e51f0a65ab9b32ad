"""The loop of every search, whatever chooses and whatever ranks.

A step takes `ids` (B, K), `states` (a list of tensors (B, K, ...)) and the
0-based `position` and returns logits (B, K, V), the new states and attention
weights (B, K, S). K is the number of hypotheses: 1 in the first step, where
there is one only, then that of the choice.

What chooses the words is a `Choice` (`Greedy`, `Beam`, `Sampling`,
`StochasticBeam`, or your own); what changes the ranks of words and hypotheses
are `Scorer`s (`scorers.py`). The loop carries what both keep of a hypothesis.
"""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.backpointers import follow_backpointers, write_rows
from luong_keras.decoding.beam_gather import gather_beams
from luong_keras.decoding.hypotheses import Hypotheses
from luong_keras.decoding.scorers import AllScorers
from luong_keras.ops import masking
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID


class Turn(NamedTuple):
    """What a choice sees of one step.

    Attributes:
        position: of the step, 0-based: the words that hypotheses have.
        logits: (B, K, V) of the next word; K is 1 at position 0.
        scores: (B, K) of the hypotheses so far.
        going: (B,) the sentences that have not stopped.
        min_lengths: (B,) fewest words before `</s>` is allowed.
        max_lengths: (B,) most symbols, `</s>` counted.
        scorers: all of them, as one.
        kept: what the scorers keep of each hypothesis.
        eos_id: the id that ends a sentence.
        pad_id: the id that a hypothesis reads when it has ended.
    """

    position: Any
    logits: Any
    scores: Any
    going: Any
    min_lengths: Any
    max_lengths: Any
    scorers: Any
    kept: Any
    eos_id: int
    pad_id: int

    @property
    def suppressed(self):
        """Words that the scorers forbid, as (B, K, V) or one that fits."""
        return self.scorers.suppressed(
            self.kept, self.position, self.logits.shape[-1]
        )

    @property
    def bonus(self):
        """What the scorers add to log-probabilities (B, K, V), or None."""
        return self.scorers.bonus(
            self.kept, self.position, self.logits.shape[-1]
        )

    def final(self, scores, parents):
        """What hypotheses with these scores (B, N) rank by, if they end here.

        `parents` (B, N) are those that they continue.
        """
        length = ops.reshape(self.position + 1, (1, 1))
        return self.scorers.final(scores, length, self.kept, parents)


class Chosen(NamedTuple):
    """What a choice has made of a step.

    Attributes:
        words: (B, K) that the hypotheses end with now.
        parents: (B, K) the places of what they continue; None where every
            hypothesis stays in its place.
        scores: (B, K) of the hypotheses.
        going: (B,) the sentences that go on.
        own: whatever else the choice carries, a nested tuple of tensors.
    """

    words: Any
    parents: Any
    scores: Any
    going: Any
    own: Any


class Ended(NamedTuple):
    """What a choice found, N hypotheses a sentence, the best first.

    Attributes:
        ranking: (B, N) the scores that order them; `-inf` for empty ranks.
        slots: (B, N) where each lived when it had its last word.
        lengths: (B, N) the number of words.
        ends: (B, N) the position whose step produced `</s>`, or -1.
    """

    ranking: Any
    slots: Any
    lengths: Any
    ends: Any


class Choice:
    """Chooses the words of a search; a subclass is all that a new one needs.

    Attributes:
        num_hypotheses: K, the hypotheses that each sentence has.
        reorders: whether hypotheses change their places from step to step.
    """

    num_hypotheses = 1
    reorders = False

    def first(self, turn: Turn) -> Chosen:
        """Step 0: makes the only hypothesis, without a word, K of one word."""
        raise NotImplementedError

    def next(self, turn: Turn, own) -> Chosen:
        """Every other step, with what the step before carried."""
        raise NotImplementedError

    def ended(self, turn: Turn, own) -> Ended:
        """What there is after the last step, whose `position` is not taken.

        The logits of this turn are None.
        """
        raise NotImplementedError


def search(
    step,
    states,
    choice: Choice,
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
        step: the step function described above.
        states: its first states, a list of (B, U).
        choice: what chooses the words.
        max_lengths: (B,) most symbols of each sentence, `</s>` counted.
        max_steps: the largest of them, the length of the result.
        min_lengths: (B,) fewest words before `</s>` is allowed; 1 when None.
        scorers: `Scorer`s; what they add is summed, their ranks follow each
            other in the given order.
        bos_id: the id the decoder reads first.
        eos_id: the id that ends a sentence.
        pad_id: the id behind the last word of the result.

    Returns:
        `Hypotheses`, the best first, as many as the choice keeps.

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
    max_lengths = ops.cast(max_lengths, "int32")
    if min_lengths is None:
        min_lengths = ops.ones_like(max_lengths)
    loop = _Loop(
        step,
        choice,
        AllScorers(scorers),
        (ops.cast(min_lengths, "int32"), max_lengths),
        (bos_id, eos_id, pad_id),
    )
    return loop.run(states, max_steps)


class _Loop:
    """The arguments of one search, and its parts."""

    def __init__(self, step, choice, scorers, limits, special_ids):
        self.step = step
        self.choice = choice
        self.scorers = scorers
        self.min_lengths, self.max_lengths = limits
        self.bos_id, self.eos_id, self.pad_id = special_ids

    def run(self, states, max_steps):
        chosen, kept, weights, states = self._start(states, max_steps)
        history = self._history(chosen, weights, max_steps)
        t, _, scores, going, own, kept, history, _ = ops.while_loop(
            lambda t, words, scores, going, *_: ops.logical_and(
                t < max_steps, ops.any(going)
            ),
            self._advance,
            (
                ops.ones((), dtype="int32"),
                chosen.words,
                chosen.scores,
                chosen.going,
                chosen.own,
                kept,
                history,
                states,
            ),
        )
        turn = self._turn(t, None, scores, going, kept)
        found = self.choice.ended(turn, own)
        ids, alignments = follow_backpointers(
            history, found.slots, found.lengths, found.ends, t, self.pad_id
        )
        return Hypotheses(
            ids[..., :max_steps],
            found.lengths,
            found.ranking,
            alignments[..., :max_steps, :],
        )

    def _turn(self, t, logits, scores, going, kept):
        return Turn(
            t,
            logits,
            scores,
            going,
            self.min_lengths,
            self.max_lengths,
            self.scorers,
            kept,
            self.eos_id,
            self.pad_id,
        )

    def _start(self, states, max_steps):
        """Step 0: the only hypothesis, without a word, becomes K."""
        batch, k = ops.shape(states[0])[0], self.choice.num_hypotheses
        states = [ops.expand_dims(state, 1) for state in states]
        first = ops.full((batch, 1), self.bos_id, dtype="int32")
        logits, states, weights = self.step(first, states, 0)
        kept = self.scorers.start(batch, ops.shape(weights)[-1], max_steps)
        kept = self.scorers.attend(kept, weights)
        scores = ops.zeros((batch, 1), dtype=masking.wider_dtype(logits.dtype))
        going = self.max_lengths >= 1
        chosen = self.choice.first(self._turn(0, logits, scores, going, kept))
        kept = [[ops.repeat(x, k, axis=1) for x in each] for each in kept]
        kept = self.scorers.add(kept, chosen.words, 0)
        copies = [ops.repeat(x, k, axis=1) for x in (*states, weights)]
        return chosen, kept, copies[-1], copies[:-1]

    def _history(self, chosen, weights, max_steps):
        """Room for what every step leaves, with that of step 0."""
        size = max_steps + 1
        batch, k = ops.shape(chosen.words)[0], self.choice.num_hypotheses
        words = ops.full((size, batch, k), self.pad_id, dtype="int32")
        parents = ops.zeros((size, batch, k), dtype="int32")
        room = ops.zeros(
            (size, batch, k, ops.shape(weights)[-1]), dtype=weights.dtype
        )
        if not self.choice.reorders:
            rows = (chosen.words, weights)
            return write_rows((words, room), 0, rows)
        rows = (chosen.words, ops.zeros_like(chosen.words), weights)
        return write_rows((words, parents, room), 0, rows)

    def _advance(self, t, words, scores, going, own, kept, history, states):
        """Step t: every live hypothesis has t words."""
        logits, states, weights = self.step(words, states, t)
        kept = self.scorers.attend(kept, weights)
        turn = self._turn(t, logits, scores, going, kept)
        chosen = self.choice.next(turn, own)
        rows = (chosen.words, weights)
        if self.choice.reorders:
            states = gather_beams(states, chosen.parents)
            kept = self.scorers.reordered(kept, chosen.parents)
            rows = (chosen.words, chosen.parents, weights)
        return (
            t + 1,
            chosen.words,
            chosen.scores,
            chosen.going,
            chosen.own,
            self.scorers.add(kept, chosen.words, t),
            write_rows(history, t, rows),
            states,
        )
