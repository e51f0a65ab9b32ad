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
3. A sentence stops when its pool is full and, with length normalisation, no
   live hypothesis can still beat the worst of the pool; or at its maximum
   length. If nothing finished, the live hypotheses are returned, without the
   probability of `</s>`.

The program itself does not compare what has finished: with
`stack_keeps="first"` candidates enter in the order of their rank while there
is room, nothing leaves, and a sentence stops when its pool is full, with
length normalisation too (which the program does not have).

A prefix imposes the first words of a sentence; one that ends in `</s>` all of
them. The sentences of a batch may have beams smaller than K and
normalisations of their own: the result of each is that of a search with its
settings alone.
"""

from typing import NamedTuple

from keras import ops

from luong_keras.decoding.backpointers import follow_backpointers, write_rows
from luong_keras.decoding.beam_gather import gather_beams
from luong_keras.decoding.hypotheses import Hypotheses
from luong_keras.decoding.top_words import top_words
from luong_keras.ops import masking
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

# A finite stand-in: sums of it with real scores stay ordered.
_NEVER = -1e30

STACK_KEEPS = ("best", "first")


class _Pool(NamedTuple):
    """Finished hypotheses: (B, P) each."""

    ranking: object  # the score that orders them, normalised if asked for
    parent: object  # the live slot they end
    end: object  # the step at which `</s>` was chosen = number of words


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
) -> Hypotheses:
    """Translates B sentences with K live hypotheses each.

    Args:
        step: the step function described in `luong_keras.decoding`.
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

    Returns:
        `Hypotheses` with N = `stack_size`, or K where nothing finished, the
        best first.
    """
    if stack_keeps not in STACK_KEEPS:
        raise ValueError(
            f"`stack_keeps` must be one of {STACK_KEEPS}. Received: "
            f"stack_keeps={stack_keeps!r}"
        )
    max_lengths = ops.cast(max_lengths, "int32")
    if min_lengths is None:
        min_lengths = ops.ones_like(max_lengths)
    if prefix is not None:
        prefix = ops.convert_to_tensor(prefix, dtype="int32")
        if prefix_lengths is None:
            prefix_lengths = ops.full_like(max_lengths, ops.shape(prefix)[1])
        prefix_lengths = ops.cast(prefix_lengths, "int32")
    search = _Search(
        step,
        beam_size,
        stack_size or beam_size,
        stack_keeps,
        length_penalty,
        None if prefix is None else (prefix, prefix_lengths),
        (beam_sizes, stack_sizes),
        (bos_id, eos_id, pad_id),
    )
    return search.run(
        states, max_lengths, ops.cast(min_lengths, "int32"), max_steps
    )


class _Search:
    """The settings of one search, and its parts."""

    def __init__(
        self,
        step,
        beam_size,
        stack_size,
        stack_keeps,
        length_penalty,
        prefix,
        sizes,
        special_ids,
    ):
        self.step = step
        self.beam_size = beam_size
        self.stack_size = stack_size
        self.stack_keeps = stack_keeps
        self.length_penalty = length_penalty
        self.prefix = prefix
        self.beam_sizes, self.stack_sizes = (
            None if size is None else ops.cast(size, "int32") for size in sizes
        )
        self.bos_id, self.eos_id, self.pad_id = special_ids

    def run(self, states, max_lengths, min_lengths, max_steps):
        batch, k = ops.shape(states[0])[0], self.beam_size
        done = max_lengths < 1
        words, scores, states, weights = self._start(batch, states, done)
        history = (
            ops.full((max_steps + 1, batch, k), self.pad_id, dtype="int32"),
            ops.zeros((max_steps + 1, batch, k), dtype="int32"),
            ops.zeros(
                (max_steps + 1, batch, k, ops.shape(weights)[-1]),
                dtype=weights.dtype,
            ),
        )
        history = write_rows(
            history, 0, (words, ops.zeros_like(words), weights)
        )
        carried = (
            ops.ones((), dtype="int32"),
            words,
            scores,
            max_lengths < 2,
            self._empty_pool(batch),
            history,
            states,
        )

        def condition(t, _words, _scores, done, *_):
            return ops.logical_and(t < max_steps, ops.any(~done))

        def body(t, words, scores, done, pool, history, states):
            return self._advance(
                t,
                (words, scores, done, pool, history, states),
                max_lengths,
                min_lengths,
            )

        t, words, scores, _, pool, history, _ = ops.while_loop(
            condition, body, carried
        )
        return self._collect(pool, scores, history, max_lengths, max_steps, t)

    def _start(self, batch, states, done):
        """Step 0: the only hypothesis, without a word, becomes K."""
        k = self.beam_size
        states = [ops.expand_dims(state, 1) for state in states]
        first = ops.full((batch, 1), self.bos_id, dtype="int32")
        logits, states, weights = self.step(first, states, 0)
        self.dtype = masking.wider_dtype(logits.dtype)
        size = logits.shape[-1]
        suppressed = ops.arange(size, dtype="int32") == self.eos_id
        if self.prefix is not None:
            suppressed = suppressed | self._suppressed_by_prefix(0, size)
        log_probabilities, words = top_words(
            logits, min(k, size), suppressed, _NEVER
        )
        # Places beyond the vocabulary stay hopeless.
        missing = [(0, 0), (0, k - min(k, size))]
        scores = ops.pad(
            log_probabilities[:, 0], missing, constant_values=_NEVER
        )
        scores = _within(self.beam_sizes, scores)
        words = ops.pad(words[:, 0], missing)
        # So do all but one in a sentence without room for a word.
        alone = ops.where(ops.arange(k) == 0, 0.0, _NEVER)
        alone = ops.cast(alone, self.dtype)
        scores = ops.where(done[:, None], alone, scores)
        words = ops.where(done[:, None], self.pad_id, words)
        copies = [ops.repeat(x, k, axis=1) for x in (*states, weights)]
        return words, scores, copies[:-1], copies[-1]

    def _empty_pool(self, batch):
        shape = (batch, self.stack_size)
        return _Pool(
            ops.full(shape, _NEVER, dtype=self.dtype),
            ops.zeros(shape, dtype="int32"),
            ops.zeros(shape, dtype="int32"),
        )

    def _advance(self, t, carried, max_lengths, min_lengths):
        """Step t: every live hypothesis has t words."""
        words, scores, done, pool, history, states = carried
        logits, new_states, weights = self.step(words, states, t)
        totals, parents, words = self._candidates(t, scores, logits)
        ends = words == self.eos_id
        # How many candidates that live on rank above each.
        above = ops.cumsum(ops.cast(~ends, "int32"), axis=-1)
        long_enough = (t >= min_lengths) & ~done
        width = self.beam_size
        if self.beam_sizes is not None:
            width = self.beam_sizes[:, None]
        finishes = ends & (above < width) & long_enough[:, None]
        pool = self._add(pool, totals, parents, finishes, t)
        live, order = ops.top_k(
            ops.where(ends, _NEVER * 2, totals), self.beam_size
        )
        live = _within(self.beam_sizes, live)
        # A sentence that has stopped keeps its hypotheses as they are.
        grows = ~done[:, None]
        own = ops.arange(self.beam_size, dtype="int32")
        parents, words = gather_beams((parents, words), order)
        parents = ops.where(grows, parents, own)
        words = ops.where(grows, words, self.pad_id)
        scores = ops.where(grows, live, scores)
        states = gather_beams(new_states, parents)
        history = write_rows(history, t, (words, parents, weights))
        # `</s>` is a symbol too: a translation may end with t + 1 of them.
        done = done | (t + 1 >= max_lengths)
        done = done | self._settled(pool, scores, max_lengths)
        return t + 1, words, scores, done, pool, history, states

    def _candidates(self, t, scores, logits):
        """The best proposals of all hypotheses, the best first: (B, 2 K)."""
        size, k = logits.shape[-1], self.beam_size
        suppressed = None
        if self.prefix is not None:
            suppressed = self._suppressed_by_prefix(t, size)
        # A single hypothesis needs a second proposal beside `</s>`.
        proposals = min(max(k, 2), size)
        log_probabilities, words = top_words(
            logits, proposals, suppressed, _NEVER
        )
        if self.beam_sizes is not None:
            most = ops.maximum(self.beam_sizes, 2)[:, None]
            log_probabilities = _within(most, log_probabilities)
        shape = (-1, k * proposals)
        totals = ops.reshape(scores[..., None] + log_probabilities, shape)
        # At most K of them end, one of each hypothesis: K others are left.
        totals, order = ops.top_k(totals, min(2 * k, k * proposals))
        order = ops.cast(order, "int32")
        (words,) = gather_beams([ops.reshape(words, shape)], order)
        return totals, order // proposals, words

    def _suppressed_by_prefix(self, t, vocabulary_size):
        """All words but the imposed one, in sentences that have one at t."""
        words, lengths = self.prefix
        last = ops.shape(words)[1] - 1
        imposed = words[:, ops.minimum(t, last)]
        others = ops.arange(vocabulary_size, dtype="int32") != imposed[:, None]
        return (others & (t < lengths)[:, None])[:, None, :]

    def _add(self, pool, totals, parents, finishes, t):
        """The pool with the candidates that finish at step t."""
        finishes = finishes & (totals > _NEVER / 2)
        if self.stack_keeps == "first":
            finishes = finishes & self._has_room(pool, finishes)
        ranking = ops.where(finishes, self._normalised(totals, t), _NEVER)
        ends = ops.zeros_like(parents) + t
        merged = _Pool(
            *(
                ops.concatenate(pair, axis=-1)
                for pair in zip(pool, (ranking, parents, ends), strict=True)
            )
        )
        best, order = ops.top_k(merged.ranking, self.stack_size)
        best = _within(self.stack_sizes, best)
        return _Pool(best, *gather_beams((merged.parent, merged.end), order))

    def _has_room(self, pool, finishes):
        """Which candidates find a place in the pool, in order of rank."""
        size = self.stack_size
        if self.stack_sizes is not None:
            size = self.stack_sizes[:, None]
        taken = ops.cast(pool.ranking > _NEVER / 2, "int32")
        taken = ops.sum(taken, axis=-1, keepdims=True)
        places = ops.cumsum(ops.cast(finishes, "int32"), axis=-1)
        return taken + places <= size

    def _normalised(self, scores, words):
        """Score / length**x, the length counting `</s>`."""
        if self._plain:
            return scores
        length = ops.cast(ops.maximum(words + 1, 1), self.dtype)
        penalty = ops.cast(self.length_penalty, self.dtype)
        # One for each sentence goes with whatever a sentence has: (B, 1).
        return scores / length ** ops.reshape(penalty, (-1, 1))

    def _settled(self, pool, scores, max_lengths):
        """Whether nothing that still lives can change the pool's worth."""
        worst = pool.ranking[:, -1:]
        if self.stack_sizes is not None:
            worst = ops.take_along_axis(
                pool.ranking, self.stack_sizes[:, None] - 1, axis=-1
            )
        full = worst > _NEVER / 2
        if self._plain or self.stack_keeps == "first":
            return full[:, 0]
        # Scores only fall; the largest length divides them most.
        hope = self._normalised(scores[:, :1], max_lengths[:, None] - 1)
        plain = ops.reshape(ops.equal(self.length_penalty, 0), (-1, 1))
        return (full & ((worst >= hope) | plain))[:, 0]

    @property
    def _plain(self):
        """Whether no sentence's score is normalised."""
        return isinstance(self.length_penalty, int | float) and (
            self.length_penalty == 0
        )

    def _collect(self, pool, scores, history, max_lengths, max_steps, t):
        """Follows every hypothesis back to its first word."""
        finished = pool.ranking[:, :1] > _NEVER / 2
        ranks = ops.arange(self.stack_size, dtype="int32")
        slots = ops.minimum(ranks, self.beam_size - 1)
        live = ops.take(scores, slots, axis=-1)
        unfinished = ops.where(
            (ranks < self.beam_size) & (live > _NEVER / 2),
            self._normalised(live, max_lengths[:, None] - 1),
            _NEVER,
        )
        unfinished = _within(self.stack_sizes, unfinished)
        ranking = ops.where(finished, pool.ranking, unfinished)
        parent = ops.where(finished, pool.parent, slots)
        lengths = ops.where(finished, pool.end, max_lengths[:, None])
        empty = ranking < _NEVER / 2
        lengths = ops.where(empty, 0, lengths)
        ends = ops.where(finished & ~empty, lengths, -1)
        ids, alignments = follow_backpointers(
            history, parent, lengths, ends, t, self.pad_id
        )
        ids = ids[..., :max_steps]
        alignments = alignments[..., :max_steps, :]
        ranking = ops.where(empty, -float("inf"), ranking)
        return Hypotheses(ids, lengths, ranking, alignments)


def _within(sizes, ranked):
    """Scores (B, ..., R) whose rank a sentence's size (B, ...) leaves."""
    if sizes is None:
        return ranked
    ranks = ops.arange(ops.shape(ranked)[-1], dtype="int32")
    return ops.where(ranks < sizes[..., None], ranked, _NEVER)
