"""Decoding strategies: what chooses the words of a search."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.top_words import largest
from luong_keras.ops.sentence_rows import PerSentence, column


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
            of `</s>`, where the hypothesis has one.
    """

    ids: Any
    lengths: Any
    scores: Any
    alignments: Any


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
    def vocabulary_size(self):
        """V; a tensor where the words are those of a shortlist."""
        return ops.shape(self.logits)[-1]

    @property
    def suppressed(self):
        """Words that the scorers forbid, as (B, K, V) or one that fits."""
        return self.scorers.suppressed(
            self.kept, self.position, self.vocabulary_size
        )

    @property
    def bonus(self):
        """What the scorers add to log-probabilities (B, K, V), or None."""
        return self.scorers.bonus(
            self.kept, self.position, self.vocabulary_size
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
        own: whatever else the choice carries, a nested tuple of tensors; of
            a choice with `per_sentence`, (B, ...) each.
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


class Choice(PerSentence):
    """Chooses the words of a search; a subclass is all that a new one needs.

    Attributes:
        num_hypotheses: K, the hypotheses that each sentence has.
        reorders: whether hypotheses change their places from step to step.
    """

    num_hypotheses = 1
    reorders = False

    def lives(self, turn: Turn, own):
        """The hypotheses that a step is for, (B, 1), or (B, K) of chains.

        What scorers keep of the others stays as it is.
        """
        return turn.going[:, None]

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


class Chains(Choice):
    """K hypotheses of which each continues itself alone.

    A subclass says which word follows.

    Args:
        count: K.
        counts: (B,) how many of them each sentence has; K when None.
    """

    def __init__(self, count=1, counts=None):
        self.num_hypotheses = count
        self.counts = column(counts)

    def pick(self, turn: Turn, barred):
        """The next word of every hypothesis.

        Args:
            turn: with logits (B, K, V).
            barred: (B, 1) where `</s>` is not allowed yet.

        Returns:
            What is added to the scores and the words, (B, K) each.
        """
        raise NotImplementedError

    def lives(self, turn: Turn, own):
        return own[0]

    def first(self, turn: Turn) -> Chosen:
        k = self.num_hypotheses
        if not self._single:
            turn = turn._replace(
                logits=ops.repeat(turn.logits, k, axis=1),
                scores=ops.repeat(turn.scores, k, axis=1),
                kept=[[ops.repeat(x, k, axis=1) for x in s] for s in turn.kept],
            )
        going = ops.repeat(turn.going[:, None], k, axis=1)
        lengths = ops.zeros_like(turn.scores, dtype="int32")
        return self.next(turn, (going, lengths))

    def next(self, turn: Turn, own) -> Chosen:
        going, lengths = own
        # As in beam search, the first word is never `</s>`.
        least = ops.maximum(turn.min_lengths, 1)
        gains, words = self.pick(turn, (turn.position < least)[:, None])
        ends = words == turn.eos_id
        scores = turn.scores + ops.where(going, gains, 0.0)
        writes = going & ~ends
        lengths = lengths + ops.cast(writes, "int32")
        room = (turn.position + 1 < turn.max_lengths)[:, None]
        going = writes & room
        return Chosen(
            ops.where(writes, words, turn.pad_id),
            None,
            scores,
            ops.any(going, axis=-1),
            (going, lengths),
        )

    def ended(self, turn: Turn, own) -> Ended:
        _, lengths = own
        most = turn.max_lengths[:, None]
        places = ops.arange(self.num_hypotheses, dtype="int32")
        slots = ops.zeros_like(lengths) + places
        # What ended before its limit has the symbol `</s>` too.
        symbols = ops.minimum(lengths + 1, ops.maximum(most, 1))
        ranking = turn.scorers.final(turn.scores, symbols, turn.kept, slots)
        ends = ops.where(lengths < most, lengths, -1)
        if self._single:
            return Ended(ranking, slots, lengths, ends)
        counts = self.num_hypotheses
        if self.counts is not None:
            counts = ops.cast(self.counts, "int32")[:, None]
        # Of a sentence without room for a word there is one.
        counted = places < ops.where(most > 0, counts, 1)
        ranking = ops.where(counted, ranking, -float("inf"))
        lengths = ops.where(counted, lengths, 0)
        ends = ops.where(counted, ends, -1)
        ranking, order = largest(ranking, self.num_hypotheses)
        order = ops.cast(order, "int32")
        return Ended(
            ranking,
            order,
            ops.take_along_axis(lengths, order, axis=-1),
            ops.take_along_axis(ends, order, axis=-1),
        )

    @property
    def _single(self):
        return isinstance(self.num_hypotheses, int) and self.num_hypotheses == 1
