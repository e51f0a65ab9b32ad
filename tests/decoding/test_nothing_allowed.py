"""Sentences for which scorers allow no translation, beside others."""

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    Greedy,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Sampling,
    Scorer,
    search,
)
from luong_keras.special_tokens import EOS_ID, PAD_ID
from tests.decoding.every_translation import SIZE, WORDS
from tests.decoding.toy_step import ConstantStep, ToyStep, as_lists

pytestmark = pytest.mark.slow_on_jax
SENTENCES, LONGEST = [3, 5, 7], 6
NO_PHRASE = np.zeros((3, 1, 1), "int32"), np.zeros((3, 1), "int32")

every_strategy = pytest.mark.parametrize(
    "strategy",
    [
        Greedy(),
        Sampling(1),
        Sampling(3, temperature=0.5, top_k=2),
        Sampling(3, top_p=0.9, counts=np.array([2, 3, 1])),
        Beam(2),
        ConstrainedBeam(2, *NO_PHRASE),
    ],
    ids=lambda strategy: type(strategy).__name__,
)


def check_empty(found, row):
    ids, lengths, scores, alignments = (np.array(part)[row] for part in found)
    assert (ids == PAD_ID).all()
    assert (lengths == 0).all()
    assert (scores == -np.inf).all()
    assert (alignments == 0).all()


@every_strategy
@pytest.mark.parametrize(
    "scorer, least",
    [
        # All words but `</s>` are used before the translation may end.
        (NoRepeatedNgrams(np.array([0, 1, 0])), LONGEST),
        # The second word is in no vocabulary.
        (Prefix(np.array([[5, 4], [5, 9], [4, 4]])), 1),
        # `</s>` comes too early.
        (Prefix(np.array([[5, 4], [5, EOS_ID], [4, 4]])), 3),
        # And at once.
        (Prefix(np.array([[5, 4], [9, 5], [4, 4]])), 1),
    ],
)
def test_an_empty_rank(strategy, scorer, least):
    step = ToyStep(SIZE)
    found = search(
        step,
        step.states(*SENTENCES),
        strategy,
        [LONGEST] * 3,
        LONGEST,
        [least] * 3,
        [scorer, LengthPenalty(1.0)],
    )
    check_empty(found, 1)
    # Of the others each has its own words and their probability.
    lists = as_lists(found)
    for row in (0, 2):
        for score, words, _ in lists[row]:
            symbols = (*words, EOS_ID)[:LONGEST]
            total = sum(
                step.log_probabilities(SENTENCES[row], words[:t])[word]
                for t, word in enumerate(symbols)
            )
            assert score == pytest.approx(total / len(symbols), rel=1e-5)
            if isinstance(scorer, Prefix):
                assert words[:2] == ((5, 4), (4, 4))[row // 2]
        assert lists[row]


@every_strategy
def test_a_model_that_allows_nothing_but_the_end(strategy):
    # As the first word `</s>` is not allowed, and all others are impossible.
    step = ConstantStep([0.0] * EOS_ID + [1.0] + [0.0] * (SIZE - EOS_ID - 1))
    states = ToyStep().states(*SENTENCES)
    found = search(step, states, strategy, [4] * 3, 4)
    for row in range(3):
        check_empty(found, row)


class NothingAfterTwoWords(Scorer):
    """Forbids `</s>` there, too."""

    def suppressed(self, states, position, vocabulary_size):
        return ops.zeros((vocabulary_size,), "int32") + position >= 2


def test_samples_that_end_in_nothing_are_left_out():
    step = ToyStep(SIZE, end_logit=2.0)
    (found,) = as_lists(
        search(
            step,
            step.states(5),
            Sampling(60, seeds=[1]),
            [4],
            4,
            scorers=[NothingAfterTwoWords()],
        )
    )
    assert {words for _, words, _ in found} == {(word,) for word in WORDS}
    for score, words, _ in found:
        total = sum(
            step.log_probabilities(5, words[:t])[word]
            for t, word in enumerate((*words, EOS_ID))
        )
        assert score == pytest.approx(total, rel=1e-5)
