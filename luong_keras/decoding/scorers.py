"""Scorers, which change the ranks of words and hypotheses in a search.

A scorer sees each step; its states move with the hypotheses. To add a scorer,
write a subclass of `Scorer` with the methods that it needs, and pass an
instance to `search`, `beam_search` or a translator.
"""

import functools

import numpy as np
from keras import ops

from luong_keras.config import LengthPenaltyForm
from luong_keras.config.checks import check_choice, choices_of
from luong_keras.decoding.argument_checks import (
    check_counts,
    check_integer,
    check_numbers,
    check_words,
    is_first,
)
from luong_keras.decoding.top_words import gather_beams
from luong_keras.ops.batch_compaction import PerSentence, number_or_tensor


class Scorer(PerSentence):
    """Base class of scorers, whose methods change nothing.

    A subclass overrides the methods that it needs.

    B sentences, K hypotheses each, S source positions, V words. `states` is
    a list of tensors (B, K, ...), the states that the scorer keeps.

    Attributes:
        reranks: Whether `final` changes anything: False, True, or one
            boolean per sentence, (B,). Also set it if `bonus` may be
            positive: sums can then rise, and the search must not end early.
        per_sentence: The names of the attributes that have one row per
            sentence if they are tensors; () for none. Each class names only
            the attributes that it adds. With None, the default, finished
            sentences stay in the batch, which is slower.
    """

    reranks = False

    def start(self, batch, source_length, max_steps):
        """Return the states of the empty hypothesis, (B, 1, ...) each.

        `source_length` is S of the attention weights; 0 without attention.
        """
        return []

    def attend(self, states, weights):
        """Return the states after the attention weights (B, K, S) of a step."""
        return states

    def add(self, states, words, position):
        """Return the states after the words (B, K) of a step were chosen."""
        return states

    def suppressed(self, states, position, vocabulary_size):
        """Return a mask of forbidden words, to fit (B, K, V), or None."""
        return None

    def bonus(self, states, position, vocabulary_size):
        """Return an addend of log-probabilities, to fit (B, K, V), or None."""
        return None

    def final(self, scores, lengths, states):
        """Return the final scores of hypotheses that end, (B, N).

        Args:
            scores: (B, N) sums of log-probabilities and bonuses.
            lengths: Number of symbols, including `</s>`, to fit (B, N).
            states: The states of these hypotheses, (B, N, ...).
        """
        return scores

    def score_upper_bound(self, scores, lengths):
        """Return the score upper bound of unfinished hypotheses, (B, N).

        Args:
            scores: Scores of live hypotheses; if scorers before this one
                rerank, their score upper bounds.
            lengths: (B, 1) maximum number of symbols.

        The default is infinity: if a scorer reranks without overriding this
        method, every search runs to its maximum length.
        """
        return ops.full_like(scores, float("inf"))


class LengthPenalty(Scorer):
    """Division of the score by a function of the length, including `</s>`.

    Args:
        exponent: A number of at least 0, or one number per sentence, (B,); 0
            leaves the plain sum (Luong et al. 2015).
        form: `"power"`: length**exponent, with exponent 1 the mean;
            `"google"`: ((5 + length) / 6)**exponent (Wu et al. 2016, equation
            14).

    Example:
    >>> import numpy as np
    >>> penalty = LengthPenalty(1.0, "google")
    >>> np.array(penalty.final(np.array([[-4.0]]), np.array([[7]]), [])).item()
    -2.0
    """

    per_sentence = ("exponent",)

    def __init__(self, exponent, form="power"):
        check_choice(choices_of(LengthPenaltyForm), form=form)
        check_numbers(
            "0 or more: with a negative one a longer hypothesis may rank "
            "higher after the search has stopped",
            lambda numbers: numbers >= 0,
            exponent=exponent,
        )
        self.exponent = number_or_tensor(exponent)
        self.form = form

    @property
    def reranks(self):
        return self.exponent != 0

    def final(self, scores, lengths, states=()):
        dtype = ops.convert_to_tensor(scores).dtype
        exponent = ops.cast(self.exponent, dtype)
        lengths = ops.cast(lengths, dtype)
        if self.form == "google":
            lengths = (lengths + 5) / 6
        # One exponent per sentence applies to all its hypotheses: (B, 1).
        return scores / lengths ** ops.reshape(exponent, (-1, 1))

    def score_upper_bound(self, scores, lengths):
        # Scores only fall, and the maximum length divides them most.
        return self.final(scores, lengths)


class CoveragePenalty(Scorer):
    """Penalty for hypotheses that leave source words unattended.

    Adds `strength` times the sum over source words of log min(attention, 1),
    with the attention summed over the steps (Wu et al. 2016, equation 14).

    Args:
        strength: A number, or one number per sentence, (B,); 0.2 in the paper.
        source_mask: (B, S) mask, True for words; without it, unattended
            padding would count. None if the batch has no padding.
    """

    per_sentence = ("strength", "source_mask")
    # The least attention that counts: log 0 would hide all other words.
    LEAST = 1e-6

    def __init__(self, strength, source_mask=None):
        check_numbers(
            "0 or more", lambda numbers: numbers >= 0, strength=strength
        )
        self.strength = number_or_tensor(strength)
        self.source_mask = number_or_tensor(source_mask)

    @property
    def reranks(self):
        return self.strength != 0

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
        coverage = ops.log(attended)
        if self.source_mask is not None:
            coverage = ops.where(self.source_mask[:, None], coverage, 0.0)
        coverage = ops.cast(ops.sum(coverage, axis=-1), scores.dtype)
        strength = ops.cast(self.strength, scores.dtype)
        return scores + ops.reshape(strength, (-1, 1)) * coverage

    def score_upper_bound(self, scores, lengths):
        # All words may still be attended; the penalty is then 0.
        return scores


class Prefix(Scorer):
    """Forced first words of each sentence, scored like any other words.

    Args:
        words: (B, P) ids; a prefix that ends in `</s>` imposes all words.
        lengths: (B,) number of imposed words; all P when None.
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
        self.lengths = check_counts(
            "lengths", lengths, 0, size, "the width of the prefix"
        )

    def suppressed(self, states, position, vocabulary_size):
        if is_first(position):
            check_words("words", self.words, self.lengths, vocabulary_size)
        # One column more, in case the prefix has no words.
        words = ops.pad(self.words, [(0, 0), (0, 1)])
        imposed = words[:, ops.minimum(position, ops.shape(words)[1] - 1)]
        is_other = (
            ops.arange(vocabulary_size, dtype="int32") != imposed[:, None]
        )
        return (is_other & (position < self.lengths)[:, None])[:, None, :]


class NoRepeatedNgrams(Scorer):
    """Ban on n-grams of words that a hypothesis already has.

    Args:
        size: N, at least 1; or one n per sentence, (B,), where 0 forbids
            nothing and none may exceed `MAX_SIZE`.

    Raises:
        ValueError: For a number below 1.
    """

    per_sentence = ("size",)
    MAX_SIZE = 8  # the largest n that a tensor of sizes may have

    def __init__(self, size):
        if np.ndim(size):
            self.size = check_counts(
                "size", size, 0, self.MAX_SIZE, "or one int for all"
            )
        else:
            self.size = check_integer("size", size)

    def start(self, batch, source_length, max_steps):
        # -1, which is not a word id, fills the positions after the last word.
        return [ops.full((batch, 1, max_steps + 1), -1, dtype="int32")]

    def add(self, states, words, position):
        positions = ops.arange(ops.shape(states[0])[2], dtype="int32")
        return [ops.where(positions == position, words[..., None], states[0])]

    def suppressed(self, states, position, vocabulary_size):
        # (B, K, T), with `position` words in each row.
        (words,) = states
        if is_first(position):
            return None  # no words to repeat
        batch, k, count = ops.shape(words)
        positions = ops.arange(count, dtype="int32")
        size = ops.reshape(ops.cast(self.size, "int32"), (-1, 1, 1))
        max_size = self.size if isinstance(self.size, int) else self.MAX_SIZE
        # The last positions of earlier n-grams that begin with the last n - 1
        # words, which are `back` words before.
        back = ops.arange(1, max_size, dtype="int32")[:, None]
        before = positions - back  # (n - 1, T)
        earlier = ops.take(
            words, ops.reshape(ops.maximum(before, 0), (-1,)), axis=2
        )
        earlier = ops.reshape(earlier, (batch, k, max_size - 1, count))
        last = ops.take(words, ops.maximum(position - back, 0)[:, 0], axis=2)
        is_same = (earlier == last[..., None]) & (before >= 0)
        is_same = (is_same & (position >= back)) | (size[..., None] <= back)
        repeats = ops.all(is_same, axis=2) & (positions < position) & (size > 0)
        return mark_words(ops.where(repeats, words, -1), vocabulary_size)


class AllScorers(PerSentence):
    """Several scorers combined into one, for the search loop.

    The combined state is a list with the list of states of each scorer.
    """

    per_sentence = ("scorers",)

    def __init__(self, scorers):
        self.scorers = list(scorers)

    def start(self, batch, source_length, max_steps):
        return [
            list(scorer.start(batch, source_length, max_steps))
            for scorer in self.scorers
        ]

    def attend(self, all_states, weights):
        return [*map(list, self._results("attend", all_states, weights))]

    def add(self, all_states, words, position):
        return [*map(list, self._results("add", all_states, words, position))]

    def suppressed(self, all_states, position, vocabulary_size):
        arguments = all_states, position, vocabulary_size
        return _combine(ops.logical_or, self._results("suppressed", *arguments))

    def bonus(self, all_states, position, vocabulary_size):
        arguments = all_states, position, vocabulary_size
        return _combine(ops.add, self._results("bonus", *arguments))

    def final(self, scores, lengths, all_states, parents):
        for scorer, states in zip(self.scorers, all_states, strict=True):
            if scorer.reranks is not False:
                states = gather_beams(states, parents)
                scores = scorer.final(scores, lengths, states)
        return scores

    def score_upper_bound(self, scores, lengths):
        for scorer in self.scorers:
            if scorer.reranks is not False:
                scores = scorer.score_upper_bound(scores, lengths)
        return scores

    def _results(self, method, all_states, *arguments):
        """Call a method of each scorer with its states."""
        return [
            getattr(scorer, method)(states, *arguments)
            for scorer, states in zip(self.scorers, all_states, strict=True)
        ]


def mark_words(words, vocabulary_size):
    """Return a (B, K, V) mask of the words (B, K, N); -1 marks nothing.

    Example:
    >>> import numpy as np
    >>> marks = mark_words(np.array([[[2, -1, 2]]], "int32"), 3)
    >>> np.array(marks).tolist()
    [[[False, False, True]]]
    """
    batch, k, count = ops.shape(words)
    size = vocabulary_size + 1  # the first column stands for -1
    rows = ops.arange(batch * k, dtype="int32")[:, None]
    index = rows * size + ops.reshape(words + 1, (batch * k, count))
    marks = ops.segment_sum(
        ops.ones((batch * k * count,), dtype="int32"),
        ops.reshape(index, (-1,)),
        num_segments=batch * k * size,
    )
    return ops.reshape(marks, (batch, k, size))[..., 1:] > 0


def _combine(operation, results):
    """Combine the results that are not None; None if all are."""
    results = [result for result in results if result is not None]
    return functools.reduce(operation, results) if results else None
