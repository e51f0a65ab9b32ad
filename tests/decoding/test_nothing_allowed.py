"""Sentences of a batch for which scorers allow no translation."""

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
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    as_lists,
    symbol_log_probabilities,
    translations,
)

pytestmark = pytest.mark.slow_on_jax
SENTENCES, MAX_LENGTH = [3, 5, 7], 6
NO_PHRASE = np.zeros((3, 1, 1), "int32"), np.zeros((3, 1), "int32")
# In the second sentence.
NO_WORD_TWICE = NoRepeatedNgrams(np.array([0, 1, 0]))

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


@pytest.mark.slow_after_first
@every_strategy
@pytest.mark.parametrize(
    "scorers, min_length",
    [
        # All words except `</s>` are used up before the minimum length.
        ([NO_WORD_TWICE], MAX_LENGTH),
        # The second word of the prefix repeats the first one.
        ([Prefix(np.array([[5, 4], [5, 5], [4, 4]])), NO_WORD_TWICE], 1),
        # `</s>` comes before the minimum length.
        ([Prefix(np.array([[5, 4], [5, EOS_ID], [4, 4]]))], 3),
        # `</s>` is not allowed as the first word.
        ([Prefix(np.array([[5, 4], [EOS_ID, 5], [4, 4]]))], 1),
    ],
)
def test_sentences_without_a_translation_have_empty_ranks(
    strategy, scorers, min_length
):
    step = ToyStep(SIZE)
    all_scorers = [*scorers, LengthPenalty(1.0)]
    found = search(
        step,
        step.states(*SENTENCES),
        strategy,
        MAX_LENGTH,
        min_lengths=min_length,
        scorers=all_scorers,
    )
    check_empty(found, 1)
    # The other sentences have translations with their log-probabilities.
    lists = as_lists(found)
    for row in (0, 2):
        for score, words, _ in lists[row]:
            symbols = (*words, EOS_ID)[:MAX_LENGTH]
            total = sum(symbol_log_probabilities(step, SENTENCES[row], symbols))
            assert score == pytest.approx(total / len(symbols), rel=1e-5)
            if isinstance(scorers[0], Prefix):
                assert words[:2] == ((5, 4), (4, 4))[row // 2]
        assert lists[row]


@pytest.mark.slow_after_first
@every_strategy
def test_model_that_allows_only_the_end_symbol(strategy):
    # `</s>` is not allowed as the first word, and other words are impossible.
    step = ConstantStep([0.0] * EOS_ID + [1.0] + [0.0] * (SIZE - EOS_ID - 1))
    states = ToyStep().states(*SENTENCES)
    found = search(step, states, strategy, 4)
    for row in range(3):
        check_empty(found, row)


class NothingAfterTwoWords(Scorer):
    """A scorer that forbids all symbols, also `</s>`, after two words."""

    def suppressed(self, states, position, vocabulary_size):
        return ops.zeros((vocabulary_size,), "int32") + position >= 2


def test_samples_without_allowed_words_are_left_out():
    step = ToyStep(SIZE, end_logit=2.0)
    strategy, scorers = Sampling(60, seeds=[1]), [NothingAfterTwoWords()]
    (found,) = translations(step, [5], 4, strategy=strategy, scorers=scorers)
    assert {words for _, words, _ in found} == {(word,) for word in WORDS}
    for score, words, _ in found:
        total = sum(symbol_log_probabilities(step, 5, (*words, EOS_ID)))
        assert score == pytest.approx(total, rel=1e-5)
