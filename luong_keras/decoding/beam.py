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
        candidates = self._rank_candidates(state, *self._initial_state(batch))
        output, more = self._select_live(state, candidates)
        empty = ops.zeros((batch, self.stack_size), dtype="int32")
        ranking = ops.full_like(empty, NEVER, dtype=state.scores.dtype)
        pool = FinishedHypotheses(ranking, empty, empty)
        return output._replace(
            scores=mask_finished(state.unfinished, output.scores),
            unfinished=state.max_lengths >= 2,
            strategy_state=(pool, *more),
        )

    def step(self, state: StepState, strategy_state) -> StepOutput:
        pool, *more = strategy_state
        candidates = self._rank_candidates(state, *more)
        pool = self._add_finished(pool, candidates, state)
        output, more = self._select_live(state, candidates)
        settled = self._settled_mask(state, pool, output.scores)
        # `</s>` is a symbol, too: a translation may end with t + 1 symbols.
        room = state.position + 1 < state.max_lengths
        return output._replace(
            unfinished=state.unfinished & room & ~settled,
            strategy_state=(pool, *more),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        pool = strategy_state[0]
        finished = pool.ranking[:, :1] > NEVER / 2
        slots, live = self._rank_live(state)
        ranking = ops.where(finished, pool.ranking, live)
        lengths = ops.where(finished, pool.end, state.max_lengths[:, None])
        empty = ranking < NEVER / 2
        lengths = ops.where(empty, 0, lengths)
        hypotheses = FinalHypotheses(
            ops.where(empty, -float("inf"), ranking),
            ops.where(finished, pool.parent, slots),
            lengths,
            ops.where(finished & ~empty, lengths, -1),
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
        count = max(self.max_size + is_first(state.position), 2)
        suppressed, bonus = state.suppressed, state.bonus
        gains, words = self._propose_words(state, count, suppressed, bonus)
        if self.sizes is not None:
            min_counts = ops.maximum(self.sizes + is_first(state.position), 2)
            gains = mask_beyond(min_counts[:, None], gains)
        num_proposals = ops.shape(gains)[-1]
        totals = state.scores[..., None] + gains
        shape = (-1, ops.shape(totals)[1] * num_proposals)
        # At most K candidates end, one per hypothesis: K others remain.
        count = (
            num_proposals
            if is_first(state.position)
            else 2 * self.num_hypotheses
        )
        totals, order = largest(ops.reshape(totals, shape), count)
        (words,) = gather_beams([ops.reshape(words, shape)], order)
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
        width = self.num_hypotheses
        if self.sizes is not None:
            width = self.sizes[:, None]
        finishes = ends & (above < width) & long_enough[:, None]
        finishes = finishes & (candidates.totals > NEVER / 2)
        if self.stack_keeps == "first":
            size = self.stack_size
            if self.stack_sizes is not None:
                size = self.stack_sizes[:, None]
            finishes = finishes & have_room(pool, finishes, size)
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
        return merge_finished(pool, finished, self.stack_size, self.stack_sizes)

    def _select_live(self, state, candidates):
        """Select the K best candidates that do not end, and their `more`."""
        ends = candidates.words == state.eos_id
        live, order = largest(
            ops.where(ends, NEVER * 2, candidates.totals), self.num_hypotheses
        )
        return self._grow_hypotheses(
            state, candidates, mask_beyond(self.sizes, live), order
        )

    def _grow_hypotheses(self, state, candidates, live, order):
        """Build the step output from the candidates at `order` (B, K).

        `live` are their scores. Stopped sentences keep their hypotheses.
        """
        grows = state.unfinished[:, None]
        slots = ops.arange(self.num_hypotheses, dtype="int32")
        parents, words, more = gather_beams(
            (candidates.parents, candidates.words, candidates.more), order
        )
        parents = ops.where(grows, parents, slots)
        words = ops.where(grows, words, state.pad_id)
        scores = ops.where(grows, live, state.scores)
        return StepOutput(words, parents, scores, None, None), more

    def _settled_mask(self, state, pool, scores):
        """Return a mask of the sentences whose results cannot change."""
        full = last_score(pool, self.stack_sizes) > NEVER / 2
        if self.stack_keeps == "first":
            return full[:, 0]
        returned = self._num_returned(pool)
        worst = last_score(pool, returned)
        maximum = ops.maximum(state.max_lengths, 1)[:, None]
        bound = state.scorers.score_upper_bound(scores[:, :1], maximum)
        settled = (worst > NEVER / 2) & (worst >= bound)
        return (settled | (full & self._greedy_mask()))[:, 0]

    def _greedy_mask(self):
        """Return a mask of the sentences with one hypothesis, (B or 1, 1)."""
        sizes = self.num_hypotheses if self.sizes is None else self.sizes
        stacks = self.stack_size
        if self.stack_sizes is not None:
            stacks = self.stack_sizes
        sizes, stacks = map(ops.convert_to_tensor, (sizes, stacks))
        return ops.reshape((sizes == 1) & (stacks == 1), (-1, 1))

    def _num_returned(self, pool):
        """Return the number of returned hypotheses, (B,); None for all."""
        if self.num_return_sequences is None:
            return self.stack_sizes
        batch, size = ops.shape(pool.ranking)
        maximum = size if self.stack_sizes is None else self.stack_sizes
        num_return_sequences = ops.cast(
            ops.broadcast_to(self.num_return_sequences, (batch,)), "int32"
        )
        return ops.minimum(num_return_sequences, maximum)

    def _rank_live(self, state):
        """Return slots and final scores of the best live hypotheses, (B, N)."""
        slots = ops.arange(self.num_hypotheses, dtype="int32")
        slots = ops.broadcast_to(slots, ops.shape(state.scores))
        maximum = ops.maximum(state.max_lengths, 1)[:, None]
        final = state.final(state.scores, slots, maximum)
        live = ops.where(state.scores > NEVER / 2, final, NEVER)
        # A scorer may rank them otherwise than their sums.
        live, slots = largest(live, self.num_hypotheses)
        ranks = ops.arange(self.stack_size, dtype="int32")
        ranked = [
            ops.take(x, ops.minimum(ranks, self.num_hypotheses - 1), axis=-1)
            for x in (live, slots)
        ]
        live = ops.where(ranks < self.num_hypotheses, ranked[0], NEVER)
        return ranked[1], mask_beyond(self.stack_sizes, live)


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


def merge_finished(
    pool: FinishedHypotheses,
    finished: FinishedHypotheses,
    size: int,
    sizes=None,
) -> FinishedHypotheses:
    """Merge `finished` into a pool; keep the best `size`, (B, size) each.

    `sizes` (B,) may leave fewer slots to a sentence.
    """
    merged = [
        ops.concatenate(pair, axis=-1)
        for pair in zip(pool, finished, strict=True)
    ]
    ranking, order = largest(merged[0], size)
    parent, end = gather_beams(merged[1:], order)
    return FinishedHypotheses(mask_beyond(sizes, ranking), parent, end)


def last_score(pool: FinishedHypotheses, sizes=None):
    """Return the score at rank `sizes` (B,), or the last score, (B, 1)."""
    if sizes is None:
        return pool.ranking[:, -1:]
    rank = ops.zeros_like(pool.parent[:, :1]) + sizes[:, None] - 1
    return gather_beams(pool.ranking, rank)


def have_room(pool: FinishedHypotheses, finishes, size):
    """Return a mask of the candidates (B, N) for which the pool has room."""
    num_taken = ops.cast(pool.ranking > NEVER / 2, "int32")
    num_taken = ops.sum(num_taken, axis=-1, keepdims=True)
    numbers = ops.cumsum(ops.cast(finishes, "int32"), axis=-1)
    return num_taken + numbers <= size


def mask_finished(unfinished, scores):
    """Mask the scores (B, K) of finished sentences, except for the first.

    These are the sentences without room for a word: `unfinished` (B,) is
    False. Their first score becomes 0.
    """
    ranks = ops.arange(ops.shape(scores)[-1], dtype="int32")
    first = ops.cast(ops.where(ranks == 0, 0.0, NEVER), scores.dtype)
    return ops.where(unfinished[:, None], scores, first)


def mask_beyond(sizes, ranked):
    """Mask scores (B, ..., R) of ranks beyond the `sizes` (B, ...)."""
    if sizes is None:
        return ranked
    ranks = ops.arange(ops.shape(ranked)[-1], dtype="int32")
    return ops.where(ranks < sizes[..., None], ranked, NEVER)
