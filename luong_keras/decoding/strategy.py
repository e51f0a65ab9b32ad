"""Decoding strategies: what chooses the words of a search."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.argument_checks import whole_number
from luong_keras.decoding.top_words import NEVER, largest
from luong_keras.ops.batch_compaction import PerSentence, column


class Hypotheses(NamedTuple):
    """The n best translations of each of B sentences, the best first.

    Attributes:
        ids: (B, N, T) int32 words, `</s>` left out, padded with `<pad>`.
        lengths: (B, N) int32 number of words.
        scores: (B, N) log-probability of the words and `</s>`; divided by
            the length where the search normalises. A hypothesis cut at the
            maximum length has none for `</s>`. `-inf` marks an empty rank.
        alignments: (B, N, T, S) attention weights of the step that produced
            each word, after the softmax; the row after the last word is that
            of `</s>`, where the hypothesis has one. S is 0 where the step
            has no attention.
    """

    ids: Any
    lengths: Any
    scores: Any
    alignments: Any


class StepState(NamedTuple):
    """The inputs of a decoding strategy at one step.

    Attributes:
        position: of the step, 0-based: the words that hypotheses have.
        logits: (B, K, V) of the next word; K is 1 at position 0.
        scores: (B, K) of the hypotheses so far.
        unfinished: (B,) boolean, the sentences that have not stopped.
        min_lengths: (B,) fewest words before `</s>` is allowed.
        max_lengths: (B,) most symbols, `</s>` counted.
        scorers: all of them, as one.
        scorer_states: what the scorers keep of each hypothesis.
        eos_id: the id that ends a sentence.
        pad_id: the id that a hypothesis reads when it has ended.
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
        """V; a tensor where the words are those of a shortlist."""
        return ops.shape(self.logits)[-1]

    @property
    def suppressed(self):
        """Words that the scorers forbid, as (B, K, V) or one that fits."""
        return self.scorers.suppressed(
            self.scorer_states, self.position, self.vocabulary_size
        )

    @property
    def bonus(self):
        """Addend of log-probabilities (B, K, V) by the scorers, or None."""
        return self.scorers.bonus(
            self.scorer_states, self.position, self.vocabulary_size
        )

    def final(self, scores, parents):
        """Final scores of hypotheses (B, N) that end at this step.

        `parents` (B, N) are those that they continue.
        """
        length = ops.reshape(self.position + 1, (1, 1))
        return self.scorers.final(scores, length, self.scorer_states, parents)


class StepOutput(NamedTuple):
    """The output of a decoding strategy at one step.

    Attributes:
        words: (B, K) that the hypotheses end with now.
        parents: (B, K) the places of what they continue; None where every
            hypothesis stays in its place.
        scores: (B, K) of the hypotheses.
        unfinished: (B,) boolean, the sentences that continue.
        strategy_state: whatever else the strategy carries, a nested tuple of
            tensors; of a strategy with `per_sentence`, (B, ...) each.
    """

    words: Any
    parents: Any
    scores: Any
    unfinished: Any
    strategy_state: Any


class FinalHypotheses(NamedTuple):
    """The result of a decoding strategy, N hypotheses, the best first.

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


class DecodingStrategy(PerSentence):
    """Base class of what chooses the words of a search.

    A subclass implements `initialize`, `step` and `finalize`.

    Attributes:
        num_hypotheses: K, the hypotheses that each sentence has.
        reorders: whether hypotheses change their places from step to step.
        per_sentence: the names of the attributes that have a row for each
            sentence, as in `Scorer`.
    """

    num_hypotheses = 1
    reorders = False

    def active_mask(self, state: StepState, strategy_state):
        """The hypotheses that are still continued, (B, 1) or (B, K).

        The scorer states of the others stay as they are.
        """
        return state.unfinished[:, None]

    def initialize(self, state: StepState) -> StepOutput:
        """Continues the empty hypothesis to K hypotheses of one word."""
        raise NotImplementedError

    def step(self, state: StepState, strategy_state) -> StepOutput:
        """Continues K hypotheses by one word.

        Args:
            state: of this step.
            strategy_state: that of the step before.
        """
        raise NotImplementedError

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        """Orders the hypotheses after the last step.

        `state` has the position after it, and no logits.
        """
        raise NotImplementedError


class IndependentSampler(DecodingStrategy):
    """K hypotheses that do not compete.

    A subclass implements `pick`, which chooses the next word of each.

    Args:
        count: K.
        counts: (B,) how many of them each sentence has; K when None.
    """

    def __init__(self, count=1, counts=None):
        self.num_hypotheses = whole_number("count", count)
        self.counts = column(counts)

    def pick(self, state: StepState, barred):
        """The next word of every hypothesis.

        Args:
            state: with logits (B, K, V).
            barred: (B, 1) where `</s>` is not allowed yet.

        Returns:
            What is added to the scores and the words, (B, K) each. Where no
            word is allowed, `NEVER` of `top_words.py` is added, -1e30.
        """
        raise NotImplementedError

    def active_mask(self, state: StepState, strategy_state):
        return strategy_state[0]

    def initialize(self, state: StepState) -> StepOutput:
        k = self.num_hypotheses
        state = state._replace(
            logits=ops.repeat(state.logits, k, axis=1),
            scores=ops.repeat(state.scores, k, axis=1),
            scorer_states=[
                [ops.repeat(x, k, axis=1) for x in s]
                for s in state.scorer_states
            ],
        )
        unfinished = ops.repeat(state.unfinished[:, None], k, axis=1)
        lengths = ops.zeros_like(state.scores, dtype="int32")
        return self.step(state, (unfinished, lengths))

    def step(self, state: StepState, strategy_state) -> StepOutput:
        unfinished, lengths = strategy_state
        # As in beam search, the first word is never `</s>`.
        least = ops.maximum(state.min_lengths, 1)
        gains, words = self.pick(state, (state.position < least)[:, None])
        ends = words == state.eos_id
        scores = state.scores + ops.where(unfinished, gains, 0.0)
        writes = unfinished & ~ends
        lengths = lengths + ops.cast(writes, "int32")
        room = (state.position + 1 < state.max_lengths)[:, None]
        unfinished = writes & room
        return StepOutput(
            ops.where(writes, words, state.pad_id),
            None,
            scores,
            ops.any(unfinished, axis=-1),
            (unfinished, lengths),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        _, lengths = strategy_state
        maximum = state.max_lengths[:, None]
        places = ops.arange(self.num_hypotheses, dtype="int32")
        slots = ops.zeros_like(lengths) + places
        # What ended before its limit has the symbol `</s>` too.
        symbols = ops.minimum(lengths + 1, ops.maximum(maximum, 1))
        ranking = state.scorers.final(
            state.scores, symbols, state.scorer_states, slots
        )
        ends = ops.where(lengths < maximum, lengths, -1)
        # Not where a step allowed no word.
        counted = state.scores > NEVER / 2
        counts = self.num_hypotheses
        if self.counts is not None:
            counts = ops.cast(self.counts, "int32")[:, None]
        # Of a sentence without room for a word there is one.
        counted = counted & (places < ops.where(maximum > 0, counts, 1))
        ranking = ops.where(counted, ranking, -float("inf"))
        lengths = ops.where(counted, lengths, 0)
        ends = ops.where(counted, ends, -1)
        ranking, order = largest(ranking, self.num_hypotheses)
        order = ops.cast(order, "int32")
        return FinalHypotheses(
            ranking,
            order,
            ops.take_along_axis(lengths, order, axis=-1),
            ops.take_along_axis(ends, order, axis=-1),
        )
