"""Forbidden phrases, and a beam search with required phrases."""

import numpy as np
from keras import ops

from luong_keras.decoding.argument_checks import (
    check_counts,
    check_words,
    is_first,
)
from luong_keras.decoding.beam import Beam, Candidates, mask_beyond
from luong_keras.decoding.scorers import Scorer, mark_words
from luong_keras.decoding.top_words import (
    NEVER,
    gather_beams,
    largest,
    log_probabilities,
)
from luong_keras.ops.backends import take_last
from luong_keras.ops.batch_compaction import PerSentence
from luong_keras.ops.masking import shapes_compatible


class PhraseProgress(PerSentence):
    """The number of words of each phrase that a hypothesis ends with.

    It counts the longest beginning of a phrase that ends the hypothesis, as a
    string matching automaton does: with the phrase "a a b", a third "a" after
    "a a" leaves the progress at 2.

    Args:
        words: (B, P, L) ids of P phrases per sentence.
        lengths: (B, P) number of words of each phrase; 0 for no phrase.
    """

    per_sentence = ("words", "lengths", "borders")

    def __init__(self, words, lengths):
        words = ops.cast(words, "int32")
        shapes = tuple(words.shape), tuple(np.shape(lengths))
        if len(shapes[0]) != 3 or not shapes_compatible(
            shapes[1], shapes[0][:2]
        ):
            raise ValueError(
                "Expected: `words` (B, P, L), the ids of P phrases per "
                "sentence, and `lengths` (B, P), their numbers of words. "
                f"Received: shapes {shapes[0]} and {shapes[1]}."
            )
        self.lengths = check_counts(
            "lengths", lengths, 0, ops.shape(words)[2], "those of `words`"
        )
        if 0 in words.shape[1:]:  # no phrases: a maximum would be undefined
            batch = ops.shape(words)[0]
            words = ops.zeros((batch, 1, 1), dtype="int32")
            self.lengths = words[..., 0]
        indices = ops.arange(ops.shape(words)[2], dtype="int32")
        inside = indices < self.lengths[..., None]
        self.words = ops.where(inside, words, -1)
        self.borders = self._border_mask(self.words, indices)

    @staticmethod
    def _border_mask(words, indices):
        """Return a boolean mask (B, P, L, L) of the borders of each phrase.

        [i, m] is True if the first m words of a phrase end its first i words.
        """
        i, m = indices[:, None, None], indices[None, :, None]
        index = ops.clip(
            i - m + indices, 0, ops.shape(words)[2] - 1
        )  # (i, m, j)
        batch, count, size = ops.shape(words)
        ends = ops.take(words, ops.reshape(index, (-1,)), axis=2)
        ends = ops.reshape(ends, (batch, count, size, size, size))
        is_same = (ends == words[:, :, None, None]) | (indices >= m)
        return ops.all(is_same, axis=-1) & (i >= m)[..., 0]

    def check(self, position, vocabulary_size):
        """Check at the first step that all words are in the vocabulary."""
        if is_first(position):
            check_words("words", self.words, self.lengths, vocabulary_size)

    def advance(self, progress, words):
        """Return the progress (B, K, P) after the words (B, K)."""
        indices = ops.arange(ops.shape(self.words)[2], dtype="int32")
        # (B, K, P, L): [m] is True if the hypothesis ends with the first m
        # words of the phrase, which the new word may continue.
        is_here = progress[..., None, None] == indices[:, None]
        is_begun = ops.any(is_here & self.borders[:, None], axis=-2)
        is_next = is_begun & (self.words[:, None] == words[..., None, None])
        return ops.max(ops.where(is_next, indices + 1, 0), axis=-1)

    def next_words(self, progress):
        """Return the next word of each phrase, (B, K, P); -1 at its end."""
        indices = ops.arange(ops.shape(self.words)[2], dtype="int32")
        is_here = progress[..., None] == indices
        return ops.max(ops.where(is_here, self.words[:, None], -1), axis=-1)


class ForbiddenPhrases(Scorer):
    """Ban on phrases in all hypotheses.

    Args:
        words: (B, P, L) ids of P phrases per sentence; B may be 1, for the
            same phrases in all sentences.
        lengths: (B, P) number of words of each phrase; 0 for no phrase.
    """

    per_sentence = ("phrases",)

    def __init__(self, words, lengths):
        self.phrases = PhraseProgress(words, lengths)

    def start(self, batch, source_length, max_steps):
        count = ops.shape(self.phrases.words)[1]
        return [ops.zeros((batch, 1, count), dtype="int32")]

    def add(self, states, words, position):
        return [self.phrases.advance(states[0], words)]

    def suppressed(self, states, position, vocabulary_size):
        self.phrases.check(position, vocabulary_size)
        (progress,) = states
        is_last = progress + 1 == self.phrases.lengths[:, None]
        words = ops.where(is_last, self.phrases.next_words(progress), -1)
        return mark_words(words, vocabulary_size)


class ConstrainedBeam(Beam):
    """A beam search whose translations contain all required phrases.

    Dynamic beam allocation (Post and Vilar 2018, in the form of Hu et al.
    2019): hypotheses with the same number of words of the phrases form a bank;
    the best hypothesis of each bank ranks before the second of any bank. Each
    hypothesis also proposes the next word of each phrase that it lacks.
    `</s>` must wait for all phrases. A hypothesis that cannot complete them
    within the maximum length is dropped, so every translation contains them.
    A word may belong to two phrases.

    Args:
        size: K.
        words: (B, P, L) ids of P phrases per sentence, in the vocabulary.
        lengths: (B, P) number of words of each phrase; 0 for no phrase.
        **others: The other arguments of `Beam`.

    The maximum length of a sentence must exceed the number of words of its
    phrases (and of its prefix) together. A word that a scorer forbids is also
    forbidden in phrases: if no hypothesis can then complete the phrases, the
    sentence has no translation.
    """

    per_sentence = ("phrases",)

    def __init__(self, size, words, lengths, **others):
        super().__init__(size, **others)
        self.phrases = PhraseProgress(words, lengths)

    def _initial_state(self, batch):
        count = ops.shape(self.phrases.words)[1]
        return (ops.zeros((batch, 1, count), dtype="int32"),)

    def _rank_candidates(self, state, progress):
        """Return all proposals and their progress, the best first."""
        gains, words = self._propose_candidates(state, progress)
        totals = state.scores[..., None] + gains
        batch, _, count = ops.shape(totals)
        totals, words = (ops.reshape(x, (batch, -1)) for x in (totals, words))
        num_candidates = ops.shape(words)[1]
        parents = ops.arange(num_candidates, dtype="int32") // count
        parents = ops.zeros_like(words) + parents
        progress = gather_beams(progress, parents)
        new_progress = ops.where(
            progress >= self.phrases.lengths[:, None],
            progress,  # complete phrases stay complete
            self.phrases.advance(progress, words),
        )
        ends = words == state.eos_id
        # The missing words and `</s>` must fit into the maximum length.
        room = (state.max_lengths - state.position - 2)[:, None]
        allowed = ends | (
            self._num_missing(new_progress) <= ops.maximum(room, 0)
        )
        totals = ops.where(allowed & (totals > NEVER / 2), totals, NEVER)
        order = ops.argsort(-totals, axis=-1)
        totals, parents, words, new_progress = gather_beams(
            (totals, parents, words, new_progress), order
        )
        return Candidates(totals, parents, words, (new_progress,))

    def _propose_candidates(self, state, progress):
        """Return the best words of each hypothesis and those of the phrases.

        The result is gains and words, (B, K, N + P) each.
        """
        self.phrases.check(state.position, state.vocabulary_size)
        suppressed, bonus = state.suppressed, state.bonus
        # One more, because `</s>` may be one of them.
        gains, words = self._propose_words(
            state, self.max_size + 1, suppressed, bonus
        )
        # Without phrases the number is that of `Beam`, for the same search. The
        # first step has one more, because the first word is never `</s>`.
        more = ops.any(self.phrases.lengths > 0, axis=1) | (state.position == 0)
        sizes = ops.where(more, self.sizes + 1, ops.maximum(self.sizes, 2))
        gains = mask_beyond(sizes[:, None], gains)
        all_gains = log_probabilities(state.logits, bonus)
        if suppressed is not None:
            all_gains = ops.where(suppressed, NEVER, all_gains)
        needed_words = self.phrases.next_words(progress)
        needed_gains = take_last(all_gains, ops.maximum(needed_words, 0))
        proposed = ops.where(gains > NEVER / 2, words, -1)
        is_proposed = ops.any(
            needed_words[..., None] == proposed[..., None, :], axis=-1
        )
        needed_gains = ops.where(
            (needed_words < 0) | is_proposed | _repeated_mask(needed_words),
            NEVER,
            needed_gains,
        )
        return (
            ops.concatenate([gains, needed_gains], axis=-1),
            ops.concatenate([words, ops.maximum(needed_words, 0)], axis=-1),
        )

    def _num_missing(self, progress):
        """Return how many words suffice to complete all phrases, (B, N)."""
        lengths = self.phrases.lengths[:, None]
        is_open = progress < lengths
        num_words = ops.sum(ops.where(is_open, lengths, 0), axis=-1)
        return num_words - ops.max(ops.where(is_open, progress, 0), axis=-1)

    def _finishing_mask(self, candidates, state, pool):
        # Only candidates with all phrases finish, and only they are compared.
        is_complete = self._num_missing(candidates.more[0]) == 0
        # The others count as ends, which rank above nothing, and have the score
        # `NEVER`, with which none finishes.
        complete_candidates = candidates._replace(
            totals=ops.where(is_complete, candidates.totals, NEVER),
            words=ops.where(is_complete, candidates.words, state.eos_id),
        )
        return super()._finishing_mask(complete_candidates, state, pool)

    def _select_live(self, candidates, ends):
        """Return the best of each bank, then the second best, and so on."""
        is_active = ~ends & (candidates.totals > NEVER / 2)
        bank = ops.where(is_active, ops.sum(candidates.more[0], axis=-1), -1)
        n = ops.shape(bank)[1]
        indices = ops.arange(n, dtype="int32")
        _, count, size = ops.shape(self.phrases.words)
        banks = ops.arange(count * size + 1, dtype="int32")
        members = ops.cast(bank[:, :, None] == banks, "int32")
        # The rank of each candidate within its bank.
        rank = ops.sum(members * ops.cumsum(members, axis=1), axis=-1) - 1
        # The others come last. Ranks beyond the beam's size have no slot, and
        # would exceed int32 in a large beam.
        fits = is_active & (rank < self.num_hypotheses)
        priority = ops.where(fits, rank * n + indices, self.num_hypotheses * n)
        _, order = largest(-priority, self.num_hypotheses)
        totals = ops.where(is_active, candidates.totals, NEVER)
        live = mask_beyond(self.sizes, gather_beams(totals, order))
        live, best = largest(live, self.num_hypotheses)
        return live, gather_beams(order, best)


def _repeated_mask(words):
    """Return a mask of the words (B, K, P) that also occur further left."""
    indices = ops.arange(ops.shape(words)[-1], dtype="int32")
    is_same = words[..., :, None] == words[..., None, :]
    return ops.any(is_same & (indices[None, :] < indices[:, None]), axis=-1)
