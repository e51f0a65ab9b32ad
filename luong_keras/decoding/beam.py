"""Beam search with a pool of finished hypotheses.

The algorithm of the program of Luong, Pham and Manning (2015): K live
hypotheses, and a separate pool of finished ones; the end symbol never takes
a live place.

1. Every live hypothesis proposes its K best words; of the K · K candidates,
   ranked by the sum of their log-probabilities, the best K that do not end
   live on. The first word is never `</s>`.
2. Candidates that end and rank above the last of those K are finished. If
   they are long enough, they enter the pool. It keeps the best: a full one
   gives up its worst for a better one.
3. A sentence stops when its pool is full and, where scorers change the ranks
   of what has finished (as length normalisation does), no live hypothesis can
   still beat the worst of the pool; or at its maximum length. If nothing
   finished, the live hypotheses are returned, without the probability of
   `</s>`.

The program itself does not compare what has finished: with
`stack_keeps="first"` candidates enter in the order of their rank while there
is room, nothing leaves, and a sentence stops when its pool is full, with
length normalisation too (which the program does not have).

The sentences of a batch may have beams smaller than K: the result of each is
that of a search with its settings alone.
"""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.beam_gather import gather_beams
from luong_keras.decoding.choice import Choice, Chosen, Ended, Turn
from luong_keras.decoding.hypotheses import Hypotheses
from luong_keras.decoding.pool import (
    NEVER,
    Pool,
    alone,
    best_of,
    empty_pool,
    have_room,
    last_of,
    within,
)
from luong_keras.decoding.scorers import LengthPenalty, Prefix
from luong_keras.decoding.search import search
from luong_keras.decoding.top_words import at_most, top_words
from luong_keras.ops.ordering import largest
from luong_keras.ops.sentence_rows import column
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

STACK_KEEPS = ("best", "first")


class Candidates(NamedTuple):
    """What could follow the hypotheses of a sentence, the best first.

    Attributes:
        totals: (B, N) what ranks them.
        parents: (B, N) the hypotheses that they continue.
        words: (B, N) with which.
        more: what else is kept of each, (B, N) each.
    """

    totals: Any
    parents: Any
    words: Any
    more: tuple = ()


class Beam(Choice):
    """The K best hypotheses at every step.

    Args:
        size: K; in a graph it may be a tensor.
        stack_size: finished hypotheses to collect, N of the result; K when
            None.
        stack_keeps: which of the finished hypotheses, where there are more:
            the "best", or those that finished "first", which end the search
            (the authors' program).
        sizes: (B,) the beam of each sentence, at most K; K when None.
        stack_sizes: (B,) the finished hypotheses of each, at most N; N when
            None.
        most: the largest K that there may be; `size` when None.
        wanted: how many of the result are read, a number or one of each
            sentence, (B,): the result has no more, and a sentence ends when
            nothing can come among these any more; N when None.
    """

    per_sentence: tuple[str, ...] | None = ("sizes", "stack_sizes", "wanted")
    reorders = True

    def __init__(
        self,
        size=10,
        stack_size=None,
        stack_keeps="best",
        sizes=None,
        stack_sizes=None,
        most=None,
        wanted=None,
    ):
        if stack_keeps not in STACK_KEEPS:
            raise ValueError(
                f"`stack_keeps` must be one of {STACK_KEEPS}. Received: "
                f"stack_keeps={stack_keeps!r}"
            )
        self.num_hypotheses = size
        self.stack_size = size if stack_size is None else stack_size
        self.most = size if most is None else most
        self.stack_keeps = stack_keeps
        self.sizes, self.stack_sizes = (
            None if each is None else ops.cast(each, "int32")
            for each in (sizes, stack_sizes)
        )
        self.wanted = column(wanted)

    def first(self, turn: Turn) -> Chosen:
        k, size = self.most, turn.vocabulary_size
        suppressed = ops.arange(size, dtype="int32") == turn.eos_id
        forbidden = turn.suppressed
        if forbidden is not None:
            suppressed = suppressed | forbidden
        count = at_most(k, size)
        gains, words = top_words(
            turn.logits, count, suppressed, NEVER, turn.bonus
        )
        # Places beyond the vocabulary stay hopeless.
        missing = [(0, 0), (0, k - count)]
        k = self.num_hypotheses
        scores = ops.pad(gains[:, 0], missing, constant_values=NEVER)[:, :k]
        scores = within(self.sizes, scores)
        words = ops.pad(words[:, 0], missing)[:, :k]
        scores = alone(turn.going, scores)
        words = ops.where(turn.going[:, None], words, turn.pad_id)
        pool = empty_pool(ops.shape(words)[0], self.stack_size, scores.dtype)
        going = turn.max_lengths >= 2
        return Chosen(words, ops.zeros_like(words), scores, going, pool)

    def next(self, turn: Turn, own) -> Chosen:
        found = self._candidates(turn, own)
        pool = self._with_finished(own, found, turn)
        chosen, _ = self._live(turn, found, turn.scores)
        return chosen._replace(
            going=self._going(turn, pool, chosen.scores), own=pool
        )

    def ended(self, turn: Turn, own) -> Ended:
        finished = own.ranking[:, :1] > NEVER / 2
        slots, unfinished = self._unfinished(turn, turn.scores)
        found = self._collected(
            turn, own, finished, slots, unfinished, own.ranking
        )
        if self.wanted is None:
            return found
        most = self.wanted
        if not isinstance(most, int):
            most = ops.max(most)
        return Ended(*(each[:, :most] for each in found))

    # Parts.

    def _candidates(self, turn, own):
        """The best proposals of all hypotheses, the best first: (B, 2 K)."""
        k = self.num_hypotheses
        # A single hypothesis needs a second proposal beside `</s>`.
        proposals = at_most(max(self.most, 2), turn.vocabulary_size)
        gains, words = top_words(
            turn.logits, proposals, turn.suppressed, NEVER, turn.bonus
        )
        if self.sizes is not None:
            most = ops.maximum(self.sizes, 2)[:, None]
            gains = within(most, gains)
        shape = (-1, k * proposals)
        totals = ops.reshape(turn.scores[..., None] + gains, shape)
        # At most K of them end, one of each hypothesis: K others are left.
        # At least two proposals, else there is one word.
        totals, order = largest(totals, k * min(2, proposals))
        order = ops.cast(order, "int32")
        (words,) = gather_beams([ops.reshape(words, shape)], order)
        return Candidates(totals, order // proposals, words)

    def _finishing(self, found, turn, pool):
        """Which candidates end, rank high enough and are long enough."""
        ends = found.words == turn.eos_id
        # How many candidates that live on rank above each.
        above = ops.cumsum(ops.cast(~ends, "int32"), axis=-1)
        long_enough = (turn.position >= turn.min_lengths) & turn.going
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

    def _with_finished(self, pool, found, turn):
        """The pool with the candidates that finish in this step."""
        finishes = self._finishing(found, turn, pool)
        ranking, *more = self._ranked(turn, found)
        ranking = ops.where(finishes, ranking, NEVER)
        ends = ops.zeros_like(found.parents) + turn.position
        others = Pool(ranking, found.parents, ends, tuple(more))
        return best_of(pool, others, self.stack_size, self.stack_sizes)

    def _ranked(self, turn, found):
        """What candidates rank by in the pool, and what it keeps of them."""
        return (turn.final(found.totals, found.parents),)

    def _live(self, turn, found, ranked):
        """The K best that do not end, and the order they were found in.

        `ranked` (B, K) is what the hypotheses before ranked by, which those
        of a sentence that has stopped keep.
        """
        ends = found.words == turn.eos_id
        live, order = largest(
            ops.where(ends, NEVER * 2, found.totals), self.num_hypotheses
        )
        return self._grown(turn, found, ranked, within(self.sizes, live), order)

    def _grown(self, turn, found, ranked, live, order):
        """The candidates at `order` (B, K), which rank by `live`."""
        grows = turn.going[:, None]
        own = ops.arange(self.num_hypotheses, dtype="int32")
        parents, words = gather_beams((found.parents, found.words), order)
        parents = ops.where(grows, parents, own)
        words = ops.where(grows, words, turn.pad_id)
        scores = ops.where(grows, live, ranked)
        return Chosen(words, parents, scores, None, None), order

    def _going(self, turn, pool, scores):
        """The sentences that go on, with this pool and these (B, K)."""
        # `</s>` is a symbol too: a translation may end with t + 1 of them.
        room = turn.position + 1 < turn.max_lengths
        return turn.going & room & ~self._settled(turn, pool, scores)

    def _settled(self, turn, pool, scores):
        """Whether nothing that still lives can change what is read."""
        full = last_of(pool, self.stack_sizes) > NEVER / 2
        reranks = turn.scorers.reranks
        falls = reranks is not True and self._sums_fall(turn)
        if self.stack_keeps == "first" or (reranks is False and not falls):
            return full[:, 0]
        worst = last_of(pool, self._read(pool))
        most = ops.maximum(turn.max_lengths, 1)[:, None]
        hope = turn.scorers.hope(scores[:, :1], most)
        settled = (worst > NEVER / 2) & (worst >= hope)
        if reranks is not True:
            of_sums = full | settled if falls else full
            settled = ops.where(ops.reshape(reranks, (-1, 1)), settled, of_sums)
        return settled[:, 0]

    def _sums_fall(self, turn):
        """Whether the best of plain sums are known before the stack is full.

        The paper's search collects a whole one, and so does this where all of
        it is read, or where a bonus may lift a sum again.
        """
        return self.wanted is not None and turn.bonus is None

    def _read(self, pool):
        """How many places of the pool are read, (B,); all when None."""
        if self.wanted is None:
            return self.stack_sizes
        batch, size = ops.shape(pool.ranking)
        most = size if self.stack_sizes is None else self.stack_sizes
        wanted = ops.cast(ops.broadcast_to(self.wanted, (batch,)), "int32")
        return ops.minimum(wanted, most)

    def _unfinished(self, turn, scores):
        """Where the live hypotheses are, and what they rank by: (B, N)."""
        ranks = ops.arange(self.stack_size, dtype="int32")
        slots = ops.minimum(ranks, self.num_hypotheses - 1)
        live = ops.take(scores, slots, axis=-1)
        parents = ops.broadcast_to(slots, ops.shape(live))
        most = ops.maximum(turn.max_lengths, 1)[:, None]
        final = turn.scorers.final(live, most, turn.kept, parents)
        unfinished = ops.where(
            (ranks < self.num_hypotheses) & (live > NEVER / 2), final, NEVER
        )
        return parents, within(self.stack_sizes, unfinished)

    @staticmethod
    def _collected(turn, pool, finished, slots, unfinished, scores):
        """What finished, or what still lives where nothing did."""
        ranking = ops.where(finished, scores, unfinished)
        parent = ops.where(finished, pool.parent, slots)
        lengths = ops.where(finished, pool.end, turn.max_lengths[:, None])
        empty = ranking < NEVER / 2
        lengths = ops.where(empty, 0, lengths)
        ends = ops.where(finished & ~empty, lengths, -1)
        ranking = ops.where(empty, -float("inf"), ranking)
        return Ended(ranking, parent, lengths, ends)


def beam_search(
    step,
    states,
    max_lengths,
    max_steps,
    min_lengths=None,
    beam_size=10,
    stack_size=None,
    length_penalty=0.0,
    prefix=None,
    prefix_lengths=None,
    beam_sizes=None,
    stack_sizes=None,
    stack_keeps="best",
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
    scorers=(),
) -> Hypotheses:
    """Translates B sentences with K live hypotheses each.

    `search` with a `Beam`, a `LengthPenalty` and a `Prefix`.

    Args:
        step: the step function described in `luong_keras.decoding.search`.
        states: its first states, a list of (B, U).
        max_lengths: (B,) most symbols of each sentence, `</s>` counted.
        max_steps: the largest of them, the length of the result.
        min_lengths: (B,) fewest words before `</s>` is allowed.
        beam_size: K.
        stack_size: finished hypotheses to collect, N of the result; K when
            None.
        length_penalty: x of the normalisation score / length**x, where the
            length counts `</s>`; 0 leaves the plain sum (the paper). A
            number, or one for each sentence, (B,).
        prefix: (B, P) ids that each sentence must begin with, scored like
            any others; None for a free search.
        prefix_lengths: (B,) how many of them; all P when None.
        beam_sizes: (B,) the beam of each sentence, at most K; K when None.
        stack_sizes: (B,) the finished hypotheses of each, at most N; N when
            None.
        stack_keeps: which of the finished hypotheses, where there are more:
            the "best", or those that finished "first", which end the search
            (the authors' program).
        bos_id: the id the decoder reads first.
        eos_id: the id that ends a sentence.
        pad_id: the id behind the last word of the result.
        scorers: other `Scorer`s.

    Returns:
        `Hypotheses` with N = `stack_size`, or K where nothing finished, the
        best first.
    """
    own = [] if prefix is None else [Prefix(prefix, prefix_lengths)]
    return search(
        step,
        states,
        Beam(beam_size, stack_size, stack_keeps, beam_sizes, stack_sizes),
        max_lengths,
        max_steps,
        min_lengths,
        [*own, LengthPenalty(length_penalty), *scorers],
        bos_id,
        eos_id,
        pad_id,
    )
