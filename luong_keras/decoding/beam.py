"""Beam search with a pool of finished hypotheses.

This is the algorithm of the program of Luong, Pham and Manning (2015): K live
hypotheses and a separate pool of finished hypotheses. The end symbol never
takes a live slot.

1. Each live hypothesis proposes its K best words. The sum of log-probabilities
   ranks the K · K candidates; the best K that do not end are the new live
   hypotheses. The first word is never `</s>`.
2. Candidates that end and rank above the last of those K are finished. If
   they are long enough, they enter the pool. It keeps the best: in a full
   pool, a better hypothesis replaces the worst.
3. A sentence stops when its results are finished and no live hypothesis can
   still beat the worst of them. A beam of 1 with a pool of 1 is a greedy
   search, and stops at its first `</s>`. A sentence also stops at its maximum
   length. If no hypothesis finished, the search returns the live hypotheses,
   without the probability of `</s>`.

The program itself does not compare finished hypotheses. `stack_keeps="first"`
does the same: candidates enter in the order of their rank while the pool has
room, none leaves, and a sentence stops when its pool is full, even if a live
hypothesis has a higher score. The result may then be worse than that of a
greedy search.

The sentences of a batch may have beams smaller than K: each result equals
that of a search of this sentence with its settings.
"""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from luong_keras.config.checks import check_choice
from luong_keras.decoding.argument_checks import (
    check_counts,
    check_integer,
    check_one_or_each,
    is_first,
    largest_number,
)
from luong_keras.decoding.strategy import (
    DecodingStrategy,
    FinalHypotheses,
    StepOutput,
    StepState,
    column,
)
from luong_keras.decoding.top_words import (
    NEVER,
    gather_beams,
    largest,
    top_words,
)

STACK_KEEPS = ("best", "first")


class Candidates(NamedTuple):
    """Candidates, the continuations of the hypotheses, the best first.

    Attributes:
        totals: (B, N) scores that rank the candidates.
        parents: (B, N) hypotheses that they continue.
        words: (B, N) words that they append.
        more: Tensors (B, N, ...), further values of each candidate.
    """

    totals: Any
    parents: Any
    words: Any
    more: tuple = ()


class Beam(DecodingStrategy):
    """Beam search, which keeps the K best hypotheses at each step.

    Args:
        size: K; in a graph it may be a tensor.
        stack_size: N, the number of finished hypotheses to collect; K when
            None.
        stack_keeps: The finished hypotheses to keep: the "best", or those
            that finish "first", which end the search (the authors' program).
        sizes: (B,) beam size of each sentence, at most K; K when None.
        stack_sizes: (B,) number of finished hypotheses of each sentence, at
            most N; N when None.
        max_size: The largest possible K if `size` is a tensor; `size` when
            None.
        num_return_sequences: A number, or one per sentence, (B,): how many
            hypotheses are read. The result has as many as the largest number.
            A sentence ends when its own cannot change any more; N when None.
    """

    per_sentence: tuple[str, ...] | None = (
        "sizes",
        "stack_sizes",
        "num_return_sequences",
    )
    reorders = True

    def __init__(
        self,
        size=10,
        stack_size=None,
        stack_keeps="best",
        sizes=None,
        stack_sizes=None,
        max_size=None,
        num_return_sequences=None,
    ):
        check_choice(STACK_KEEPS, stack_keeps=stack_keeps)
        size = check_integer("size", size)
        stack_size = check_integer("stack_size", stack_size, optional=True)
        if max_size is None and not isinstance(size, int):
            raise ValueError(
                "`max_size` must be given, a Python int, where `size` is a "
                f"tensor. Received: size={size}"
            )
        self.num_hypotheses = size
        self.stack_size = size if stack_size is None else stack_size
        self.max_size = size if max_size is None else max_size
        self.stack_keeps = stack_keeps
        self.sizes = check_counts("sizes", sizes, 1, size, "the beam's size")
        self.stack_sizes = check_counts(
            "stack_sizes", stack_sizes, 1, self.stack_size, "`stack_size`"
        )
        self.num_return_sequences = check_one_or_each(
            "num_return_sequences", num_return_sequences
        )

    def initialize(self, state: StepState) -> StepOutput:
        batch = ops.shape(state.scores)[0]
        empty = ops.zeros((batch, self.stack_size), dtype="int32")
        ranking = ops.full_like(empty, NEVER, dtype=state.scores.dtype)
        pool = FinishedHypotheses(ranking, empty, empty)
        # The first word is never `</s>`.
        state = state._replace(min_lengths=ops.maximum(state.min_lengths, 1))
        output = self.step(state, (pool, *self._initial_state(batch)))
        # A sentence without room for a word has one hypothesis, of score 0.
        counts = ops.where(state.unfinished, self.num_hypotheses, 1)
        return output._replace(scores=mask_beyond(counts, output.scores))

    def step(self, state: StepState, strategy_state) -> StepOutput:
        pool, *more = strategy_state
        candidates = self._rank_candidates(state, *more)
        pool = self._add_finished(pool, candidates, state)
        live, order = self._select_live(
            candidates, candidates.words == state.eos_id
        )
        parents, words, more = gather_beams(candidates[1:], order)
        # Stopped sentences keep their hypotheses.
        grows = state.unfinished[:, None]
        slots = ops.arange(self.num_hypotheses, dtype="int32")
        scores = ops.where(grows, live, state.scores)
        settled = self._settled_mask(state, pool, scores)
        # `</s>` is a symbol, too: a translation may end with t + 1 symbols.
        room = state.position + 1 < state.max_lengths
        return StepOutput(
            words=ops.where(grows, words, state.pad_id),
            parents=ops.where(grows, parents, slots),
            scores=scores,
            unfinished=state.unfinished & room & ~settled,
            strategy_state=(pool, *more),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        pool = strategy_state[0]
        is_finished = pool.ranking[:, :1] > NEVER / 2
        slots = ops.arange(self.num_hypotheses, dtype="int32")
        slots = ops.broadcast_to(slots, ops.shape(state.scores))
        maximum = state.max_lengths[:, None]
        final = state.final(state.scores, slots, ops.maximum(maximum, 1))
        is_live = ~is_finished & (state.scores > NEVER / 2)
        pool = self._merge(
            pool,
            FinishedHypotheses(
                ops.where(is_live, final, NEVER),
                slots,
                ops.broadcast_to(maximum, ops.shape(slots)),
            ),
        )
        empty = pool.ranking < NEVER / 2
        lengths = ops.where(empty, 0, pool.end)
        hypotheses = FinalHypotheses(
            ops.where(empty, -float("inf"), pool.ranking),
            pool.parent,
            lengths,
            ops.where(is_finished & ~empty, lengths, -1),
        )
        if self.num_return_sequences is None:
            return hypotheses
        maximum = largest_number(self.num_return_sequences)
        return FinalHypotheses(*(x[:, :maximum] for x in hypotheses))

    # Parts.

    def _initial_state(self, batch):
        """Return the state of the empty hypothesis, (B, 1, ...) each."""
        return ()

    def _rank_candidates(self, state):
        """Return the best proposals of all hypotheses, the best first."""
        # The first step needs one more, because `</s>` may be proposed but is
        # not allowed. Later a single hypothesis needs one beside `</s>`.
        first = is_first(state.position)
        num_proposals = max(self.max_size + first, 2)
        gains, words = self._propose_words(
            state, num_proposals, state.suppressed, state.bonus
        )
        if np.ndim(self.sizes):
            counts = ops.maximum(self.sizes + first, 2)
            gains = mask_beyond(counts[:, None], gains)
        totals = state.scores[..., None] + gains
        shape = (-1, ops.shape(totals)[1] * num_proposals)
        # At most K candidates end, one per hypothesis: K others remain.
        count = num_proposals if first else 2 * self.num_hypotheses
        totals, order = largest(ops.reshape(totals, shape), count)
        words = gather_beams(ops.reshape(words, shape), order)
        return Candidates(totals, order // num_proposals, words)

    def _propose_words(self, state, count, suppressed, bonus):
        """Return gains and words, (B, K, N); NEVER beyond the vocabulary."""
        size = state.vocabulary_size
        # A size that is a tensor is assumed to be large enough.
        num_words = min(count, size) if isinstance(size, int) else count
        gains, words = top_words(state.logits, num_words, suppressed, bonus)
        padding = [(0, 0), (0, 0), (0, count - num_words)]
        gains = ops.pad(gains, padding, constant_values=NEVER)
        return gains, ops.pad(words, padding)

    def _finishing_mask(self, candidates, state, pool):
        """Return a mask of the candidates that finish in this step."""
        ends = candidates.words == state.eos_id
        # The number of candidates up to each rank that do not end.
        above = ops.cumsum(ops.cast(~ends, "int32"), axis=-1)
        long_enough = (state.position >= state.min_lengths) & state.unfinished
        finishes = ends & (above < column(self.sizes)) & long_enough[:, None]
        finishes = finishes & (candidates.totals > NEVER / 2)
        if self.stack_keeps == "first":  # while the pool has room
            taken = ops.cast(pool.ranking > NEVER / 2, "int32")
            taken = ops.sum(taken, axis=-1, keepdims=True)
            numbers = taken + ops.cumsum(ops.cast(finishes, "int32"), axis=-1)
            finishes = finishes & (numbers <= column(self.stack_sizes))
        return finishes

    def _add_finished(self, pool, candidates, state):
        """Return the pool with the candidates that finish in this step."""
        finishes = self._finishing_mask(candidates, state, pool)
        lengths = ops.reshape(state.position + 1, (1, 1))
        final = state.final(candidates.totals, candidates.parents, lengths)
        finished = FinishedHypotheses(
            ops.where(finishes, final, NEVER),
            candidates.parents,
            ops.zeros_like(candidates.parents) + state.position,
        )
        return self._merge(pool, finished)

    def _merge(self, pool, finished):
        """Return the best of the pool and of `finished`, both `(B, P)`."""
        merged = [
            ops.concatenate(pair, axis=-1)
            for pair in zip(pool, finished, strict=True)
        ]
        ranking, order = largest(merged[0], self.stack_size)
        ranking = mask_beyond(self.stack_sizes, ranking)
        return FinishedHypotheses(ranking, *gather_beams(merged[1:], order))

    def _select_live(self, candidates, ends):
        """Return scores and places of the K best that do not end, (B, K)."""
        live, order = largest(
            ops.where(ends, NEVER * 2, candidates.totals), self.num_hypotheses
        )
        return mask_beyond(self.sizes, live), order

    def _settled_mask(self, state, pool, scores):
        """Return a mask of the sentences whose results cannot change."""
        full = last_score(pool, self.stack_sizes) > NEVER / 2
        if self.stack_keeps == "first":
            return full[:, 0]
        returned = self.stack_sizes
        if self.num_return_sequences is not None:
            returned = ops.minimum(self.num_return_sequences, returned)
            returned = ops.cast(returned, "int32")
        worst = last_score(pool, returned)
        maximum = ops.maximum(state.max_lengths, 1)[:, None]
        bound = state.scorers.score_upper_bound(scores[:, :1], maximum)
        settled = (worst > NEVER / 2) & (worst >= bound)
        is_greedy = (self.sizes == 1) & (self.stack_sizes == 1)
        settled = settled | (full & ops.reshape(is_greedy, (-1, 1)))
        return settled[:, 0]


class FinishedHypotheses(NamedTuple):
    """Finished hypotheses, (B, P) each, the best first.

    Attributes:
        ranking: Scores that rank the hypotheses; `NEVER` in an empty slot.
        parent: Live slot of the hypothesis that `</s>` ended.
        end: Step that chose `</s>`, which is also the number of words.
    """

    ranking: Any
    parent: Any
    end: Any


def last_score(pool: FinishedHypotheses, sizes):
    """Return the score at rank `sizes`, a number or (B,): (B, 1)."""
    if isinstance(sizes, int):
        return pool.ranking[:, sizes - 1 : sizes]
    rank = ops.zeros_like(pool.parent[:, :1]) + column(sizes) - 1
    return gather_beams(pool.ranking, rank)


def mask_beyond(sizes, ranked):
    """Mask scores (B, ..., R) of ranks beyond the `sizes` (B, ...).

    One number as `sizes` is that of all ranks.
    """
    if np.ndim(sizes) == 0:
        return ranked
    ranks = ops.arange(ops.shape(ranked)[-1], dtype="int32")
    return ops.where(ranks < sizes[..., None], ranked, NEVER)
