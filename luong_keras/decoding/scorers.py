"""Scorers: changes to the ranks of words and hypotheses in a search.

A scorer sees every step: what it keeps of a hypothesis moves with it. To add
one, write a subclass of `Scorer` with the methods that it needs, and give an
object of it to `search`, `beam_search` or a translator.
"""

import numbers

from keras import ops

from luong_keras.decoding.argument_checks import counts_between
from luong_keras.decoding.top_words import gather_beams
from luong_keras.ops.batch_compaction import PerSentence, column

LENGTH_PENALTIES = ("power", "google")


class Scorer(PerSentence):
    """Base class of scorers, whose methods change nothing.

    A subclass overrides those that it needs.

    B sentences, K hypotheses each, S source positions, V words. `states` is
    what the scorer keeps, a list of tensors (B, K, ...).

    Attributes:
        reranks: whether `final` changes anything: False, True, or one for
            each sentence, (B,). Without any the search of a sentence ends
            when it has found enough (the paper's rule). Set it, too, where
            `bonus` may be positive: sums rise then, and the search must not
            end early.
        per_sentence: the names of the attributes that have a row for each
            sentence where they are tensors; () for none. Each class names
            its own. None, the default: finished sentences stay in the
            batch, which is slower.
    """

    reranks = False

    def start(self, batch, source_length, max_steps):
        """States of the empty hypothesis, (B, 1, ...) each.

        `source_length` is S of the attention weights; 0 of a step without.
        """
        return []

    def attend(self, states, weights):
        """The states after the attention of a step, weights (B, K, S)."""
        return states

    def add(self, states, words, position):
        """The states after the step's words (B, K) were chosen."""
        return states

    def suppressed(self, states, position, vocabulary_size):
        """Mask of forbidden next words, to fit (B, K, V); None for none."""
        return None

    def bonus(self, states, position, vocabulary_size):
        """Addend of log-probabilities, to fit (B, K, V), or None."""
        return None

    def final(self, scores, lengths, states):
        """The ranks of hypotheses that end, (B, N).

        Args:
            scores: (B, N) sums of log-probabilities and bonuses.
            lengths: symbols, `</s>` counted, to fit (B, N).
            states: as kept of each, (B, N, ...).
        """
        return scores

    def score_upper_bound(self, scores, lengths):
        """The best rank that scores (B, N) may still come to.

        Args:
            scores: of live hypotheses; if scorers before this one rerank,
                the best scores that are possible according to them.
            lengths: (B, 1) most symbols.

        A scorer that reranks and does not say so lets every search run on to
        its maximum length.
        """
        return ops.full_like(scores, float("inf"))


class LengthPenalty(Scorer):
    """Divides the score by a function of the length, `</s>` counted.

    Args:
        exponent: a number of 0 or more, or one for each sentence, (B,); 0
            leaves the plain sum (Luong et al. 2015).
        form: `"power"`: length**exponent, with 1 the mean; `"google"`: ((5 +
            length) / 6)**exponent (Wu et al. 2016, equation 14).

    Example:
    >>> import numpy as np
    >>> penalty = LengthPenalty(1.0, "google")
    >>> np.array(penalty.final(np.array([[-4.0]]), np.array([[7]]), [])).item()
    -2.0
    """

    per_sentence = ("exponent",)

    def __init__(self, exponent, form="power"):
        if form not in LENGTH_PENALTIES:
            raise ValueError(
                f"`form` must be one of {LENGTH_PENALTIES}. Received: "
                f"form={form!r}."
            )
        if isinstance(exponent, numbers.Real) and not exponent >= 0:
            raise ValueError(
                "`exponent` must be 0 or more: with a negative one a longer "
                "hypothesis may rank higher after the search has stopped. "
                f"Received: exponent={exponent}."
            )
        self.exponent = column(exponent)
        self.form = form

    @property
    def reranks(self):
        if isinstance(self.exponent, int | float):
            return self.exponent != 0
        return ops.not_equal(self.exponent, 0)

    def final(self, scores, lengths, states=()):
        dtype = ops.convert_to_tensor(scores).dtype
        exponent = ops.cast(self.exponent, dtype)
        lengths = ops.cast(lengths, dtype)
        if self.form == "google":
            lengths = (lengths + 5) / 6
        # One for each sentence goes with whatever a sentence has: (B, 1).
        return scores / lengths ** ops.reshape(exponent, (-1, 1))

    def score_upper_bound(self, scores, lengths):
        # Scores only fall; the largest length divides them most.
        return self.final(scores, lengths)


class CoveragePenalty(Scorer):
    """Takes away from hypotheses that leave source words unattended.

    strength times the sum over source words of log min(attention, 1), where
    the attention is summed over the steps (Wu et al. 2016, equation 14).

    Args:
        strength: a number, or one for each sentence, (B,); theirs was 0.2.
        source_mask: (B, S), True for words; padding is attended by nobody
            and would count. None where there is no padding.
    """

    per_sentence = ("strength", "source_mask")
    # Where nothing at all was attended: log 0 would hide every other word.
    LEAST = 1e-6

    def __init__(self, strength, source_mask=None):
        self.strength = column(strength)
        self.source_mask = column(source_mask)

    @property
    def reranks(self):
        if isinstance(self.strength, int | float):
            return self.strength != 0
        return ops.not_equal(self.strength, 0)

    def start(self, batch, source_length, max_steps):
        if isinstance(source_length, int) and source_length == 0:
            raise ValueError(
                "`CoveragePenalty` needs a step that returns attention "
                "weights (B, K, S). Received: a step that returns None."
            )
        return [ops.zeros((batch, 1, source_length), "float32")]

    def attend(self, states, weights):
        return [states[0] + ops.cast(weights, "float32")]

    def final(self, scores, lengths, states):
        attended = ops.clip(states[0], self.LEAST, 1.0)
        missed = ops.log(attended)
        if self.source_mask is not None:
            missed = ops.where(self.source_mask[:, None], missed, 0.0)
        missed = ops.cast(ops.sum(missed, axis=-1), scores.dtype)
        strength = ops.cast(self.strength, scores.dtype)
        return scores + ops.reshape(strength, (-1, 1)) * missed

    def score_upper_bound(self, scores, lengths):
        # All may be attended yet, and nothing is taken away then.
        return scores


class Prefix(Scorer):
    """Imposes the first words of every sentence, scored like any others.

    Args:
        words: (B, P) ids; one that ends in `</s>` imposes all words.
        lengths: (B,) how many of them; all P when None.
    """

    per_sentence = ("words", "lengths")

    def __init__(self, words, lengths=None):
        self.words = ops.convert_to_tensor(words, dtype="int32")
        if len(self.words.shape) != 2:
            raise ValueError(
                "Expected: the words of a prefix for each sentence, (B, P). "
                f"Received: shape {tuple(self.words.shape)}."
            )
        batch, size = ops.shape(self.words)
        if lengths is None:
            lengths = ops.full((batch,), size, dtype="int32")
        self.lengths = counts_between(
            "lengths", lengths, 0, size, "the width of the prefix"
        )

    def suppressed(self, states, position, vocabulary_size):
        # A place more, for a prefix of no words.
        words = ops.pad(self.words, [(0, 0), (0, 1)])
        imposed = words[:, ops.minimum(position, ops.shape(words)[1] - 1)]
        others = ops.arange(vocabulary_size, dtype="int32") != imposed[:, None]
        return (others & (position < self.lengths)[:, None])[:, None, :]


class NoRepeatedNgrams(Scorer):
    """Forbids every n-gram of words that a hypothesis has already.

    Args:
        size: n, 1 or more; or one for each sentence, (B,), where 0 forbids
            nothing and no one is above `MAX_SIZE`.

    Raises:
        ValueError: for a number below 1.
    """

    per_sentence = ("size",)
    MAX_SIZE = 8  # of sizes that are not known before the search

    def __init__(self, size):
        if isinstance(size, numbers.Integral):
            size = int(size)  # NumPy's integers are no `int`
        if isinstance(size, int) and size < 1:
            raise ValueError(
                f"`size` must be 1 or more. Received: size={size}. Leave the "
                "scorer out to allow repetition."
            )
        self.size = column(size)

    def start(self, batch, source_length, max_steps):
        # After the last word stands what no word is.
        return [ops.full((batch, 1, max_steps + 1), -1, dtype="int32")]

    def add(self, states, words, position):
        places = ops.arange(ops.shape(states[0])[2], dtype="int32")
        return [ops.where(places == position, words[..., None], states[0])]

    def suppressed(self, states, position, vocabulary_size):
        # (B, K, T), `position` words in each row.
        (words,) = states
        places = ops.arange(ops.shape(words)[2], dtype="int32")
        size = ops.reshape(ops.cast(self.size, "int32"), (-1, 1, 1))
        known = self.size if isinstance(self.size, int) else self.MAX_SIZE
        # Places where an n-gram ended that begins with the last n - 1 words.
        repeats = (places < position) & (size > 0)
        for back in range(1, known):
            at = ops.maximum(position - back, 0)
            same = ops.roll(words, back, axis=2) == words[:, :, at, None]
            inside = (places >= back) & (position >= back)
            repeats = repeats & ((same & inside) | (size <= back))
        return marked_words(ops.where(repeats, words, -1), vocabulary_size)


class AllScorers(PerSentence):
    """Several scorers as one, for the loop of a search.

    What they keep is a list of the lists of each.
    """

    per_sentence = ("scorers",)

    def __init__(self, scorers):
        self.scorers = list(scorers)

    def start(self, batch, source_length, max_steps):
        return [
            list(scorer.start(batch, source_length, max_steps))
            for scorer in self.scorers
        ]

    def attend(self, kept, weights):
        return [
            list(scorer.attend(states, weights)) if states else states
            for scorer, states in self._with(kept)
        ]

    def add(self, kept, words, position):
        return [
            list(scorer.add(states, words, position)) if states else states
            for scorer, states in self._with(kept)
        ]

    @staticmethod
    def where(active_mask, kept, before):
        """New states where the mask (B, 1) or (B, K) is True, else the old."""

        def chosen(new, old):
            shape = ops.shape(active_mask) + (1,) * (len(new.shape) - 2)
            return ops.where(ops.reshape(active_mask, shape), new, old)

        return [
            [chosen(*pair) for pair in zip(news, olds, strict=True)]
            for news, olds in zip(kept, before, strict=True)
        ]

    def suppressed(self, kept, position, vocabulary_size):
        found = [
            scorer.suppressed(states, position, vocabulary_size)
            for scorer, states in self._with(kept)
        ]
        found = [each for each in found if each is not None]
        return _any(found) if found else None

    def bonus(self, kept, position, vocabulary_size):
        found = [
            scorer.bonus(states, position, vocabulary_size)
            for scorer, states in self._with(kept)
        ]
        found = [each for each in found if each is not None]
        return sum(found[1:], found[0]) if found else None

    @property
    def reranks(self):
        """True if any scorer reranks; (B,) booleans if sentences differ."""
        each = [scorer.reranks for scorer in self.scorers]
        if any(isinstance(x, bool) and x for x in each):
            return True
        some = [x for x in each if not isinstance(x, bool)]
        return _any(some) if some else False

    def final(self, scores, lengths, kept, parents):
        for scorer, states in self._with(kept):
            if scorer.reranks is not False:
                states = gather_beams(states, parents)
                scores = scorer.final(scores, lengths, states)
        return scores

    def score_upper_bound(self, scores, lengths):
        for scorer in self.scorers:
            if scorer.reranks is not False:
                scores = scorer.score_upper_bound(scores, lengths)
        return scores

    def _with(self, kept):
        return zip(self.scorers, kept, strict=True)


def _any(tensors):
    result = tensors[0]
    for each in tensors[1:]:
        result = ops.logical_or(result, each)
    return result


def marked_words(words, vocabulary_size):
    """Boolean (B, K, V), True at the words (B, K, N); -1 marks nothing.

    Example:
    >>> import numpy as np
    >>> marks = marked_words(np.array([[[2, -1, 2]]], "int32"), 3)
    >>> np.array(marks).tolist()
    [[[False, False, True]]]
    """
    batch, k, count = ops.shape(words)
    size = vocabulary_size + 1  # the first place is that of -1
    rows = ops.arange(batch * k, dtype="int32")[:, None]
    index = rows * size + ops.reshape(words + 1, (batch * k, count))
    marks = ops.segment_sum(
        ops.ones((batch * k * count,), dtype="int32"),
        ops.reshape(index, (-1,)),
        num_segments=batch * k * size,
    )
    return ops.reshape(marks, (batch, k, size))[..., 1:] > 0
