"""Decoding strategies, which choose the words of a search."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from luong_keras.decoding.argument_checks import check_counts, check_integer
from luong_keras.decoding.top_words import (
    NEVER,
    gather_beams,
    largest,
    top_words,
)
from luong_keras.ops.batch_compaction import PerSentence


class Hypotheses(NamedTuple):
    """The n best translations of each of B sentences, the best first.

    Attributes:
        ids: (B, N, T) int32 words without `</s>`, padded with `<pad>`.
        lengths: (B, N) int32 number of words.
        scores: (B, N) log-probability of the words and `</s>`, divided by
            the length if the search normalises. For a hypothesis cut at the
            maximum length, `</s>` is not counted. `-inf` marks an empty rank.
        alignments: (B, N, T, S) attention weights of the step that produced
            each word, after the softmax. The row after the last word belongs
            to `</s>`, if the hypothesis has it. S is 0 if the step has no
            attention.
    """

    ids: Any
    lengths: Any
    scores: Any
    alignments: Any


class StepState(NamedTuple):
    """The inputs of a decoding strategy at one step.

    Attributes:
        position: 0-based position, the number of words of each hypothesis:
            the Python int 0 in the first step, a tensor in the loop.
        logits: (B, K, V) logits of the next word; K is 1 at position 0.
        scores: (B, K) scores of the hypotheses so far.
        unfinished: (B,) boolean mask of the sentences that have not stopped.
        min_lengths: (B,) minimum number of words before `</s>` is allowed.
        max_lengths: (B,) maximum number of symbols, including `</s>`.
        scorers: The scorers, combined into one.
        scorer_states: The states that the scorers keep per hypothesis.
        eos_id: The id that ends a sentence.
        pad_id: The id that a finished hypothesis reads.
    """

    position: Any
    logits: Any
    scores: Any
    unfinished: Any
    min_lengths: Any
    max_lengths: Any
    scorers: Any
    scorer_states: Any
    eos_id: int
    pad_id: int

    @property
    def vocabulary_size(self):
        """V; a tensor if a shortlist restricts the words."""
        return self.logits.shape[-1] or ops.shape(self.logits)[-1]

    @property
    def suppressed(self):
        """Mask of forbidden words, broadcastable to (B, K, V), or None."""
        return self.scorers.suppressed(
            self.scorer_states, self.position, self.vocabulary_size
        )

    @property
    def bonus(self):
        """Addend of the log-probabilities (B, K, V), or None."""
        return self.scorers.bonus(
            self.scorer_states, self.position, self.vocabulary_size
        )

    def final(self, scores, parents, lengths):
        """Compute the final scores of hypotheses (B, N) of `lengths` symbols.

        `parents` (B, N) are the hypotheses that they continue.
        """
        return self.scorers.final(scores, lengths, self.scorer_states, parents)


class StepOutput(NamedTuple):
    """The output of a decoding strategy at one step.

    Attributes:
        words: (B, K) last words of the hypotheses.
        parents: (B, K) slots of the hypotheses that they continue; None if
            each hypothesis stays in its slot.
        scores: (B, K) scores of the hypotheses.
        unfinished: (B,) boolean mask of the sentences that continue.
        strategy_state: Nested tuple of tensors, the other state of the
            strategy; (B, ...) each for a strategy with `per_sentence`.
    """

    words: Any
    parents: Any
    scores: Any
    unfinished: Any
    strategy_state: Any


class FinalHypotheses(NamedTuple):
    """The result of a decoding strategy, N hypotheses, the best first.

    Attributes:
        ranking: (B, N) scores that rank the hypotheses; `-inf` if empty.
        slots: (B, N) slot of each hypothesis when it had its last word.
        lengths: (B, N) number of words.
        ends: (B, N) position of the step that produced `</s>`, or -1.
    """

    ranking: Any
    slots: Any
    lengths: Any
    ends: Any


class DecodingStrategy(PerSentence):
    """Base class of decoding strategies, which choose the words of a search.

    A subclass implements `initialize`, `step` and `finalize`.

    Attributes:
        num_hypotheses: K, the number of hypotheses per sentence.
        reorders: Whether hypotheses change their slots from step to step.
        per_sentence: The names of the attributes with one row per sentence,
            as in `Scorer`.
    """

    num_hypotheses = 1
    reorders = False

    def active_mask(self, state: StepState, strategy_state):
        """Return a mask of the unfinished hypotheses, (B, 1) or (B, K).

        The scorer states of finished hypotheses do not change.
        """
        return state.unfinished[:, None]

    def initialize(self, state: StepState) -> StepOutput:
        """Expand the empty hypothesis to K hypotheses of one word."""
        raise NotImplementedError

    def step(self, state: StepState, strategy_state) -> StepOutput:
        """Continue K hypotheses by one word.

        Args:
            state: The inputs of this step.
            strategy_state: The strategy state of the previous step.
        """
        raise NotImplementedError

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        """Rank the hypotheses after the last step.

        `state` has the position after the last step, and no logits.
        """
        raise NotImplementedError


class IndependentSampler(DecodingStrategy):
    """Base class of strategies whose K hypotheses do not compete.

    A subclass implements `pick`, which chooses the next words.

    Args:
        count: K.
        counts: (B,) number of hypotheses of each sentence; K when None.
    """

    def __init__(self, count=1, counts=None):
        count = check_integer("count", count)
        self.num_hypotheses = count
        self.counts = check_counts("counts", counts, 1, count, "`count`")

    def pick(self, state: StepState, barred):
        """Choose the next word of each hypothesis.

        Args:
            state: The inputs of this step, with logits (B, K, V).
            barred: (B, 1) mask, True if `</s>` is not allowed yet.

        Returns:
            The addends of the scores, and the words, (B, K) each. If no word
            is allowed, the addend is `NEVER` of `top_words.py`, -1e30.
        """
        raise NotImplementedError

    def active_mask(self, state: StepState, strategy_state):
        return strategy_state[0]

    def initialize(self, state: StepState) -> StepOutput:
        # Each hypothesis continues the empty one.
        batch, _ = ops.shape(state.scores)
        parents = ops.zeros((batch, self.num_hypotheses), dtype="int32")
        logits, scores, scorer_states, unfinished = gather_beams(
            (
                state.logits,
                state.scores,
                state.scorer_states,
                state.unfinished[:, None],
            ),
            parents,
        )
        state = state._replace(
            logits=logits, scores=scores, scorer_states=scorer_states
        )
        lengths = ops.zeros_like(parents)
        return self.step(state, (unfinished, lengths))

    def step(self, state: StepState, strategy_state) -> StepOutput:
        unfinished, lengths = strategy_state
        # As in beam search, the first word is never `</s>`.
        min_lengths = ops.maximum(state.min_lengths, 1)
        gains, words = self.pick(state, (state.position < min_lengths)[:, None])
        ends = words == state.eos_id
        scores = state.scores + ops.where(unfinished, gains, 0.0)
        is_written = unfinished & ~ends
        lengths = lengths + ops.cast(is_written, "int32")
        room = (state.position + 1 < state.max_lengths)[:, None]
        unfinished = is_written & room
        return StepOutput(
            ops.where(is_written, words, state.pad_id),
            None,
            scores,
            ops.any(unfinished, axis=-1),
            (unfinished, lengths),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        _, lengths = strategy_state
        maximum = state.max_lengths[:, None]
        ranks = ops.arange(self.num_hypotheses, dtype="int32")
        slots = ops.zeros_like(lengths) + ranks
        # Hypotheses that end before the limit also have the symbol `</s>`.
        symbols = ops.minimum(lengths + 1, ops.maximum(maximum, 1))
        # A sentence without room for a word has one hypothesis.
        counts = ops.where(maximum > 0, column(self.counts), 1)
        # A hypothesis does not count if a step allowed no word.
        is_counted = (state.scores > NEVER / 2) & (ranks < counts)
        ranking, order = largest(
            ops.where(
                is_counted,
                state.final(state.scores, slots, symbols),
                -float("inf"),
            ),
            self.num_hypotheses,
        )
        is_counted, lengths = gather_beams((is_counted, lengths), order)
        lengths = ops.where(is_counted, lengths, 0)
        ends = ops.where(is_counted & (lengths < maximum), lengths, -1)
        return FinalHypotheses(ranking, order, lengths, ends)


class Greedy(IndependentSampler):
    """Greedy choice of the best word at each step.

    The result is that of a beam of size 1, without its bookkeeping.
    """

    per_sentence = ("counts",)

    def pick(self, state, barred):
        # If the best word is a barred `</s>`, the second one is chosen.
        gains, words = top_words(state.logits, 2, state.suppressed, state.bonus)
        second = (words[..., 0] == state.eos_id) & barred
        return (
            ops.where(second, gains[..., 1], gains[..., 0]),
            ops.where(second, words[..., 1], words[..., 0]),
        )


def column(numbers):
    """Return (B,) numbers as (B, 1), and one number for all as it is."""
    return numbers[:, None] if np.ndim(numbers) else numbers
