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
3. A sentence stops when its pool is full and, if scorers change the ranks of
   finished hypotheses (as length normalisation does), no live hypothesis can
   still beat the worst of the pool. It also stops at its maximum length. If
   no hypothesis finished, the search returns the live hypotheses, without the
   probability of `</s>`.

The program itself does not compare finished hypotheses. `stack_keeps="first"`
does the same: candidates enter in the order of their rank while the pool has
room, none leaves, and a sentence stops when its pool is full, also with
length normalisation (which the program does not have).

The sentences of a batch may have beams smaller than K: each result equals
that of a search of this sentence with its settings.
"""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.argument_checks import (
    counts_between,
    known_values,
    one_or_each,
    whole_number,
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
        more: tensors (B, N, ...), further values of each candidate.
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
        stack_keeps: the finished hypotheses to keep: the "best", or those
            that finish "first", which end the search (the authors' program).
        sizes: (B,) beam size of each sentence, at most K; K when None.
        stack_sizes: (B,) number of finished hypotheses of each sentence, at
            most N; N when None.
        max_size: the largest possible K if `size` is a tensor; `size` when
            None.
        num_return_sequences: a number, or one per sentence, (B,): how many
            hypotheses are read. The result has as many as the largest number.
            A sentence ends when its own cannot change any more; N when None.
    """

    per_sentence: tuple[str, ...] | None = (
        *("sizes", "stack_sizes", "num_return_sequences"),
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
        if stack_keeps not in STACK_KEEPS:
            raise ValueError(
                f"`stack_keeps` must be one of {STACK_KEEPS}. Received: "
                f"stack_keeps={stack_keeps!r}"
            )
        size = whole_number("size", size)
        stack_size = whole_number("stack_size", stack_size, optional=True)
        if max_size is None and not isinstance(size, int):
            raise ValueError(
                "`max_size` must be given, a Python int, where `size` is a "
                f"tensor. Received: size={size}"
            )
        self.num_hypotheses = size
        self.stack_size = size if stack_size is None else stack_size
        self.max_size = size if max_size is None else max_size
        self.stack_keeps = stack_keeps
        self.sizes = counts_between("sizes", sizes, 1, size, "the beam's size")
        self.stack_sizes = counts_between(
            "stack_sizes", stack_sizes, 1, self.stack_size, "`stack_size`"
        )
        self.num_return_sequences = one_or_each(
            "num_return_sequences", num_return_sequences
        )

    def initialize(self, state: StepState) -> StepOutput:
        batch = ops.shape(state.scores)[0]
        found = self._candidates(state, *self._first_state(batch))
        output, kept = self._live(state, found)
        pool = no_finished_hypotheses(
            batch, self.stack_size, state.scores.dtype
        )
        return output._replace(
            scores=mask_finished(state.unfinished, output.scores),
            unfinished=state.max_lengths >= 2,
            strategy_state=(pool, *kept),
        )

    def step(self, state: StepState, strategy_state) -> StepOutput:
        pool, *kept = strategy_state
        found = self._candidates(state, *kept)
        pool = self._with_finished(pool, found, state)
        output, kept = self._live(state, found)
        return output._replace(
            unfinished=self._continues(state, pool, output.scores),
            strategy_state=(pool, *kept),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        pool = strategy_state[0]
        finished = pool.ranking[:, :1] > NEVER / 2
        slots, live = self._live_results(state)
        ranking = ops.where(finished, pool.ranking, live)
        lengths = ops.where(finished, pool.end, state.max_lengths[:, None])
        empty = ranking < NEVER / 2
        lengths = ops.where(empty, 0, lengths)
        found = FinalHypotheses(
            ops.where(empty, -float("inf"), ranking),
            ops.where(finished, pool.parent, slots),
            lengths,
            ops.where(finished & ~empty, lengths, -1),
        )
        if self.num_return_sequences is None:
            return found
        # A known number, because JAX compiles fixed shapes.
        counts = self.num_return_sequences
        known = known_values(counts)
        maximum = ops.max(counts) if known is None else int(known.max())
        return FinalHypotheses(*(each[:, :maximum] for each in found))

    # Parts.

    def _first_state(self, batch):
        """Return the state of the empty hypothesis, (B, 1, ...) each."""
        return ()

    def _candidates(self, state):
        """Return the best proposals of all hypotheses, the best first."""
        # The first step needs one more, because `</s>` may be proposed but is
        # not allowed. Later a single hypothesis needs one beside `</s>`.
        count = max(self.max_size + is_first(state), 2)
        gains, words = self._best_words(state, count)
        if self.sizes is not None:
            least = ops.maximum(self.sizes + is_first(state), 2)
            gains = mask_beyond(least[:, None], gains)
        number = ops.shape(gains)[-1]
        totals = state.scores[..., None] + gains
        shape = (-1, ops.shape(totals)[1] * number)
        # At most K candidates end, one per hypothesis: K others remain.
        count = number if is_first(state) else 2 * self.num_hypotheses
        totals, order = largest(ops.reshape(totals, shape), count)
        order = ops.cast(order, "int32")
        (words,) = gather_beams([ops.reshape(words, shape)], order)
        return Candidates(totals, order // number, words)

    def _best_words(self, state, count):
        """Return gains and words, (B, K, N); NEVER beyond the vocabulary."""
        size = state.vocabulary_size
        # A size that is a tensor is assumed to be large enough.
        known = min(count, size) if isinstance(size, int) else count
        gains, words = top_words(
            state.logits, known, state.suppressed, state.bonus
        )
        missing = [(0, 0), (0, 0), (0, count - known)]
        gains = ops.pad(gains, missing, constant_values=NEVER)
        return gains, ops.pad(words, missing)

    def _finishing(self, found, state, pool):
        """Return a mask of the candidates that finish in this step."""
        ends = found.words == state.eos_id
        # The number of candidates up to each rank that do not end.
        above = ops.cumsum(ops.cast(~ends, "int32"), axis=-1)
        long_enough = (state.position >= state.min_lengths) & state.unfinished
        width = self.num_hypotheses
        if self.sizes is not None:
            width = self.sizes[:, None]
        finishes = ends & (above < width) & long_enough[:, None]
        finishes = finishes & (found.totals > NEVER / 2)
        if self.stack_keeps == "first":
            size = self.stack_size
            if self.stack_sizes is not None:
                size = self.stack_sizes[:, None]
            finishes = finishes & have_room(pool, finishes, size)
        return finishes

    def _with_finished(self, pool, found, state):
        """Return the pool with the candidates that finish in this step."""
        finishes = self._finishing(found, state, pool)
        final = state.final(found.totals, found.parents)
        others = FinishedHypotheses(
            ops.where(finishes, final, NEVER),
            found.parents,
            ops.zeros_like(found.parents) + state.position,
        )
        return best_of(pool, others, self.stack_size, self.stack_sizes)

    def _live(self, state, found):
        """Select the K best candidates that do not end, and their `more`."""
        ends = found.words == state.eos_id
        live, order = largest(
            ops.where(ends, NEVER * 2, found.totals), self.num_hypotheses
        )
        return self._grown(state, found, mask_beyond(self.sizes, live), order)

    def _grown(self, state, found, live, order):
        """Build the step output from the candidates at `order` (B, K).

        `live` are their scores. Stopped sentences keep their hypotheses.
        """
        grows = state.unfinished[:, None]
        places = ops.arange(self.num_hypotheses, dtype="int32")
        parents, words, kept = gather_beams(
            (found.parents, found.words, found.more), order
        )
        parents = ops.where(grows, parents, places)
        words = ops.where(grows, words, state.pad_id)
        scores = ops.where(grows, live, state.scores)
        return StepOutput(words, parents, scores, None, None), kept

    def _continues(self, state, pool, scores):
        """Return a mask of the sentences that continue after this step."""
        # `</s>` is a symbol, too: a translation may end with t + 1 symbols.
        room = state.position + 1 < state.max_lengths
        return state.unfinished & room & ~self._settled(state, pool, scores)

    def _settled(self, state, pool, scores):
        """Return a mask of the sentences whose results cannot change."""
        full = last_of(pool, self.stack_sizes) > NEVER / 2
        reranks = state.scorers.reranks
        falls = reranks is not True and self._sums_fall(state)
        if self.stack_keeps == "first" or (reranks is False and not falls):
            return full[:, 0]
        worst = last_of(pool, self._num_read(pool))
        maximum = ops.maximum(state.max_lengths, 1)[:, None]
        bound = state.scorers.score_upper_bound(scores[:, :1], maximum)
        settled = (worst > NEVER / 2) & (worst >= bound)
        if reranks is not True:
            of_sums = full | settled if falls else full
            settled = ops.where(ops.reshape(reranks, (-1, 1)), settled, of_sums)
        return settled[:, 0]

    def _sums_fall(self, state):
        """Test whether plain sums can settle a sentence with a partial pool.

        The paper's search fills the whole pool. This search does the same if
        all of the pool is returned, or if a bonus may raise a sum.
        """
        return self.num_return_sequences is not None and state.bonus is None

    def _num_read(self, pool):
        """Return the number of returned hypotheses, (B,); None for all."""
        if self.num_return_sequences is None:
            return self.stack_sizes
        batch, size = ops.shape(pool.ranking)
        maximum = size if self.stack_sizes is None else self.stack_sizes
        num_return_sequences = ops.cast(
            ops.broadcast_to(self.num_return_sequences, (batch,)), "int32"
        )
        return ops.minimum(num_return_sequences, maximum)

    def _live_results(self, state):
        """Return slots and final scores of live hypotheses, (B, N) each."""
        ranks = ops.arange(self.stack_size, dtype="int32")
        slots = ops.minimum(ranks, self.num_hypotheses - 1)
        live = ops.take(state.scores, slots, axis=-1)
        parents = ops.broadcast_to(slots, ops.shape(live))
        maximum = ops.maximum(state.max_lengths, 1)[:, None]
        final = state.scorers.final(live, maximum, state.scorer_states, parents)
        unfinished = ops.where(
            (ranks < self.num_hypotheses) & (live > NEVER / 2), final, NEVER
        )
        return parents, mask_beyond(self.stack_sizes, unfinished)


class FinishedHypotheses(NamedTuple):
    """Finished hypotheses, (B, P) each, the best first.

    Attributes:
        ranking: scores that rank the hypotheses; `NEVER` in an empty place.
        parent: live slot of the hypothesis that `</s>` ended.
        end: step that chose `</s>`, which is also the number of words.
    """

    ranking: Any
    parent: Any
    end: Any


def no_finished_hypotheses(batch, size, dtype) -> FinishedHypotheses:
    """Create a pool of `size` empty places."""
    shape = (batch, size)
    return FinishedHypotheses(
        ops.full(shape, NEVER, dtype=dtype),
        ops.zeros(shape, dtype="int32"),
        ops.zeros(shape, dtype="int32"),
    )


def best_of(
    pool: FinishedHypotheses, others: FinishedHypotheses, size: int, sizes=None
) -> FinishedHypotheses:
    """Merge a pool with others and keep the best `size`, (B, size) each.

    `sizes` (B,) may leave fewer places to a sentence.
    """
    merged = [
        ops.concatenate(pair, axis=-1)
        for pair in zip(pool, others, strict=True)
    ]
    best, order = largest(merged[0], size)
    parent, end = gather_beams(merged[1:], order)
    return FinishedHypotheses(mask_beyond(sizes, best), parent, end)


def last_of(pool: FinishedHypotheses, sizes=None):
    """Return the score at rank `sizes` (B,), or the last score, (B, 1)."""
    if sizes is None:
        return pool.ranking[:, -1:]
    return ops.take_along_axis(pool.ranking, sizes[:, None] - 1, axis=-1)


def have_room(pool: FinishedHypotheses, finishes, size):
    """Return a mask of the candidates (B, N) for which the pool has room."""
    taken = ops.cast(pool.ranking > NEVER / 2, "int32")
    taken = ops.sum(taken, axis=-1, keepdims=True)
    places = ops.cumsum(ops.cast(finishes, "int32"), axis=-1)
    return taken + places <= size


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


def is_first(state):
    """Test whether this is the step of the empty hypothesis."""
    return isinstance(state.position, int)
