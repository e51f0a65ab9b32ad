"""Hypotheses that go their ways without regard to each other."""

from keras import ops

from luong_keras.decoding.choice import Choice, Chosen, Ended, Turn
from luong_keras.ops.ordering import largest
from luong_keras.ops.sentence_rows import column


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
