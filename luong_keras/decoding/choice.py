"""What chooses the words of a search, and what it sees of each step."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.ops.sentence_rows import PerSentence


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
